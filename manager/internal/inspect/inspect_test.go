// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

var update = flag.Bool("update", false, "write testdata")

// The schema of version 1 has every field that it ever had.
func TestSchema_OnlyGrows(t *testing.T) {
	var fields []string
	for _, view := range []any{inspect.Overview{}, inspect.KeyPage{}, inspect.Key{}, inspect.Done{}} {
		fields = append(fields, pathsOf(reflect.TypeOf(view).Name(), reflect.TypeOf(view))...)
	}
	now := strings.Join(fields, "\n") + "\n"
	const name = "testdata/v1.txt"
	if *update {
		if err := os.WriteFile(name, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(was)) {
		if !slices.Contains(fields, strings.TrimSpace(line)) {
			t.Errorf("the schema has lost %q: programs read it", strings.TrimSpace(line))
		}
	}
	if now != string(was) {
		t.Errorf("the schema has changed; if it only grew, run the test with -update and add it to docs/console.md:\n%s", now)
	}
}

// pathsOf returns the fields of a type as "Overview.controllers[].name string".
func pathsOf(at string, of reflect.Type) (out []string) {
	switch {
	case of == reflect.TypeFor[time.Time]():
		return []string{at + " time"}
	case of.Kind() == reflect.Pointer:
		return pathsOf(at, of.Elem())
	case of.Kind() == reflect.Slice:
		return pathsOf(at+"[]", of.Elem())
	case of.Kind() == reflect.Map:
		return pathsOf(at+"{}", of.Elem())
	case of.Kind() != reflect.Struct:
		return []string{at + " " + of.Kind().String()}
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			out = append(out, pathsOf(at, f.Type)...)
		} else {
			out = append(out, pathsOf(at+"."+name, f.Type)...)
		}
	}
	return out
}

// controlled is a controller with many keys.
type controlled struct {
	recorded []reconcile.KeyRuns
	runs     []reconcile.PastRun
	queued   []workqueue.KeyState[string]
	kind     schema.GroupKind
	pauses   reconcile.Pauses
	// edit changes the snapshot; nil: nothing.
	edit func(*reconcile.Snapshot)
}

func (controlled) Name() string { return "website" }

func (c controlled) Snapshot() reconcile.Snapshot {
	s := reconcile.Snapshot{Name: "website", Sources: []source.Snapshot{{Source: "kind", Kind: c.kind}}, Pauses: c.pauses}
	if c.edit != nil {
		c.edit(&s)
	}
	return s
}

func (c controlled) RecordedKeys(q reconcile.KeysQuery) reconcile.KeysPage {
	var out []reconcile.KeyRuns
	for _, k := range c.recorded {
		if q.Match == nil || q.Match(k) {
			out = append(out, k)
		}
	}
	return reconcile.KeysPage{Keys: out}
}

func (c controlled) Findings() []reconcile.Finding { return nil }

func (c controlled) RunsOf(string) []reconcile.PastRun { return c.runs }

func (c controlled) QueuedKeys() []workqueue.KeyState[string] { return c.queued }

// program has one controller, or none, and one object.
type program struct {
	parts inspect.Parts
	controlled
	obj  kube.Object
	kind schema.GroupVersionKind
}

func (p program) Parts() inspect.Parts { return p.parts }

func (p program) Sharing() *inspect.Sharing { return p.parts.Sharing }

func (program) Stopping() bool { return false }

func (p program) Controller(name string) inspect.Controlled {
	if name != "website" {
		return nil
	}
	return p.controlled
}

func (p program) Cached(schema.GroupKind, kube.Key) (kube.Object, schema.GroupVersionKind) {
	return p.obj, p.kind
}

func get(t *testing.T, p inspect.Program, path string, into any) (code int) {
	t.Helper()
	w := httptest.NewRecorder()
	inspect.Handler(p).ServeHTTP(w, httptest.NewRequest(http.MethodGet, inspect.Path+path, nil))
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%s: %v in %s", path, err, w.Body)
	}
	return w.Code
}

// Keys are read by pages, whatever there is; a bad query says what to write.
func TestHandler_PagesOfKeys_M24(t *testing.T) {
	now := time.Now()
	p := program{}
	for n := range 3000 {
		p.recorded = append(p.recorded, reconcile.KeyRuns{Key: fmt.Sprintf("shop/a%04d", n), Outcome: reconcile.OutcomeDone, Ended: now.Add(time.Duration(n))})
	}
	p.recorded[7].FailingSince = now
	p.queued = []workqueue.KeyState[string]{{Key: "shop/new", State: workqueue.Ready, Age: time.Minute}, {Key: "shop/a0003", State: workqueue.Delayed, Attempts: 4}}
	for _, c := range []struct {
		query          string
		matched, first int
		key            string // the first
		next           int
	}{
		{"", 3001, 100, "shop/a2999", 100},
		{"limit=9999", 3001, 500, "shop/a2999", 500},
		{"limit=2&offset=3000", 3001, 1, "shop/new", 0},
		{"offset=99999", 3001, 0, "", 0},
		{"filter=a00[0-9]7$&sort=key", 10, 10, "shop/a0007", 0},
		{"contains=new", 1, 1, "shop/new", 0},
		{"state=ready", 1, 1, "shop/new", 0},
		{"state=failing&sort=key", 2, 2, "shop/a0003", 0},
		{"sort=failures&limit=1", 3001, 1, "shop/a0003", 1},
		{"sort=age&limit=1", 3001, 1, "shop/new", 1},
	} {
		var page inspect.KeyPage
		if code := get(t, p, "controllers/website/keys?"+c.query, &page); code != http.StatusOK {
			t.Errorf("%q: %d", c.query, code)
			continue
		}
		if page.Known != 3001 || page.Matched != c.matched || len(page.Keys) != c.first || page.Next != c.next || c.key != "" && page.Keys[0].Key != c.key {
			t.Errorf("%q: %d of %d keys match, %d are in the page, the next begins at %d; want %d, %d and %d, the first %q", c.query, page.Matched, page.Known, len(page.Keys), page.Next, c.matched, c.first, c.next, c.key)
		}
	}
	for path, want := range map[string]string{
		"controllers/website/keys?filter=(":                           "no regular expression",
		"controllers/website/keys?state=lost":                         "none of ready, held",
		"controllers/website/keys?sort=x":                             "none of recent, key",
		"controllers/website/keys?limit=many":                         "whole number",
		"controllers/website/keys?offset=-1":                          "whole number",
		"controllers/website/keys?filter=" + strings.Repeat("a", 300): "at most 256",
		"controllers/other/keys":                                      `no controller "other"`,
		"controllers/website/key?key=shop/gone":                       "no recorded run",
		"controllers/other/key?key=shop/gone":                         `no controller "other"`,
	} {
		var wrong struct{ Error string }
		if code := get(t, p, path, &wrong); code < 400 || code >= 500 || !strings.Contains(wrong.Error, want) {
			t.Errorf("%s: %d %q, want it to say %q", path, code, wrong.Error, want)
		}
	}
}

// A key tells its runs, the newest first, with causes and requests.
func TestHandler_OneKey(t *testing.T) {
	p := program{}
	p.recorded = []reconcile.KeyRuns{{Key: "shop/web", Runs: 9, Outcome: reconcile.OutcomeError, Err: "no"}}
	cause := source.Cause{Source: "kind Deployment", Type: kube.Updated, Kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Object: kube.Key{Namespace: "shop", Name: "web"}, OldVersion: 3, Version: 4, Own: true}
	p.runs = []reconcile.PastRun{
		{ID: "first", Outcome: reconcile.OutcomeDone},
		{ID: "second", Outcome: reconcile.OutcomeError, Err: "no", Took: time.Second, Causes: reconcile.Causes{First: cause, Last: source.Cause{Source: source.Retry}, Count: 2},
			Requests: []reconcile.Request{
				{Verb: "apply", Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Subresource: "scale", Key: kube.Key{Namespace: "shop", Name: "web"}, Code: 200, Effect: "changed", Fields: []string{"spec.replicas"}},
				{Verb: "get", Path: "/version"},
			}},
	}
	var key inspect.Key
	get(t, p, "controllers/website/key?key=shop/web", &key)
	if len(key.Timeline) != 2 || key.Timeline[0].ID != "second" || key.Runs != 9 || key.State != "idle" {
		t.Fatalf("got %+v", key)
	}
	run := key.Timeline[0]
	want := inspect.Cause{Text: "updated Deployment shop/web (own write)", Source: "kind Deployment", Event: "updated", Kind: "Deployment.apps", Object: "shop/web", OldVersion: 3, Version: 4, Own: true}
	if len(run.Causes) != 2 || !reflect.DeepEqual(run.Causes[0], want) || run.Causes[1].Text != "retry" {
		t.Errorf("the causes are %+v", run.Causes)
	}
	if len(run.Requests) != 2 || run.Requests[0].Resource != "deployments.apps/scale" || run.Requests[0].Effect != "changed" || run.Requests[1].Resource != "/version" {
		t.Errorf("the requests are %+v", run.Requests)
	}
}

// The overview names what is wrong now, the longest first.
func TestOf_Problems(t *testing.T) {
	now := time.Now()
	p := inspect.Parts{
		Now: now, Phase: "running", Since: now.Add(-time.Hour), Leadership: &inspect.Leadership{Lease: "flyball/website", Leading: true, Refused: "forbidden"},
		Members: []inspect.Member{{Name: "mailer", Error: "no route", Since: now.Add(-time.Minute)}},
		Controllers: []reconcile.Snapshot{
			{Name: "slow", Synced: true, Workers: 1, Active: 1, Failing: 2, Queue: workqueue.Stats{Ready: 50}, Running: []reconcile.Running{{Key: "shop/a", Since: now.Add(-2 * time.Hour)}, {Key: "shop/b", Since: now}}},
			{Name: "waiting", Workers: 1, Sources: []source.Snapshot{{Source: "kind Pod"}}},
			{Name: "well", Synced: true, Workers: 4, Active: 4, Queue: workqueue.Stats{Ready: 5}},
		},
		Findings: map[string][]reconcile.Finding{"well": {
			{Kind: reconcile.HotLoop, Key: "shop/hot", Count: 7, Object: "ConfigMap shop/hot", Fields: []string{"data.n"}, Since: now.Add(-3 * time.Hour)},
			{Kind: reconcile.NoEffect, Key: "shop/idle", Count: 9},
			{Kind: reconcile.Starved, Key: "shop/last", Count: 5000, By: "priority -100", Since: now.Add(-80 * time.Minute)},
		}},
		Informers: []state.Informer{
			{Kind: schema.GroupVersionKind{Kind: "Pod"}, Scopes: []state.Scope{{Scope: listwatch.Scope{}, State: state.Forbidden, Reason: "pods is forbidden", Since: now.Add(-90 * time.Minute)}}, Handlers: []state.Handler{{Name: "mine", Running: time.Minute, Backlog: 3}}},
			{Kind: schema.GroupVersionKind{Kind: "Secret"}, Scopes: []state.Scope{{State: state.Live}, {State: state.Listing}}},
			{Kind: schema.GroupVersionKind{Kind: "Service"}, Objects: 7, Heap: 12345, UnusedSince: now.Add(-70 * time.Minute)},
			{Kind: schema.GroupVersionKind{Kind: "Node"}, UnusedSince: now.Add(-59 * time.Minute), Scans: []state.Scan{
				{Caller: "shop.run (shop.go:7)", Objects: 5000, First: now.Add(-65 * time.Minute), Last: now}, {Caller: "shop.old (shop.go:9)", First: now.Add(-9 * time.Hour), Last: now.Add(-time.Hour)},
			}},
		},
		Webhooks: &inspect.Webhooks{Certificate: &inspect.Certificate{NotAfter: now.Add(50*time.Hour + time.Minute)}, BundleProblems: []string{"it may not be written"}},
	}
	var got []string
	for _, problem := range p.Of().Problems {
		got = append(got, strings.TrimSpace(problem.Name+" "+problem.Key)+": "+problem.Text)
	}
	want := []string{
		"well shop/hot: the key is woken by its own writes alone, 7 times in a row: each run writes data.n of ConfigMap shop/hot",
		"slow shop/a: a reconcile still runs",
		"Pod: in all namespaces: Forbidden: pods is forbidden",
		"well shop/last: the key waits for a worker, while 5000 that became ready later went before it (priority -100)",
		"Service: nothing uses the informer: no handler, and no read; its 7 objects take 13 kB",
		"Node: a reconcile reads 5000 objects without an index: shop.run (shop.go:7)",
		"waiting: its workers have not started: the source kind Pod is not synced",
		"mailer: ended: no route",
		"certificate: the certificate expires in 50 hours",
		"CA bundle: it may not be written",
		"flyball/website: the server refuses the Lease: forbidden",
		`Pod: a call of the handler "mine" has run for 60 s; 3 events wait`,
		"slow: all 1 workers are busy, and 50 keys wait",
		"slow: 2 of its keys fail and are retried",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A certificate is a problem when it is missing, has ended, or is about to.
func TestOf_Certificates(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		ends    time.Duration // 0: there is none
		problem string
		want    string
	}{
		"none":           {0, "no file", "the webhooks have no certificate, so that no request arrives: no file"},
		"good":           {8 * 24 * time.Hour, "", ""},
		"the next fails": {80 * 24 * time.Hour, "no file", "no file"},
		"soon over":      {6*24*time.Hour + time.Minute, "", "the certificate expires in 144 hours"},
		"over":           {-time.Hour, "", "the certificate has expired at " + now.Add(-time.Hour).Format(time.RFC3339)},
		"a credential":   {80 * 24 * time.Hour, "password: hunter2", "(hidden)"},
	} {
		got := ""
		hooks := &inspect.Webhooks{Problem: c.problem}
		if c.ends != 0 {
			hooks.Certificate = &inspect.Certificate{NotAfter: now.Add(c.ends)}
		}
		for _, problem := range (inspect.Parts{Now: now, Webhooks: hooks}).Of().Problems {
			got += problem.Text
		}
		if got != c.want {
			t.Errorf("%s: the problem is %q, want %q", name, got, c.want)
		}
	}
}

// No value of a confidential object, and no credential, is shown.
func TestObjectOf_HidesSecrets(t *testing.T) {
	const canary = "hunter2-canary"
	meta := metav1.ObjectMeta{
		Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}, OwnerReferences: []metav1.OwnerReference{{Kind: "Website", Name: "web"}},
		Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"` + canary + `"}}`, "kapp.k14s.io/original": `{"data":"` + canary + `"}`},
	}
	plain := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	for name, c := range map[string]struct {
		obj   kube.Object
		kind  string
		shows string
	}{
		"a Secret":                {&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": []byte(canary)}, StringData: map[string]string{"x": canary}, Type: "Opaque"}, "Secret", "password: (hidden)"},
		"a kubeconfig":            {&corev1.ConfigMap{ObjectMeta: plain, Data: map[string]string{"config": "client-key-data: " + canary, "open": "yes"}}, "ConfigMap", `open: "yes"`},
		"a key":                   {&corev1.ConfigMap{ObjectMeta: plain, Data: map[string]string{"key": "-----BEGIN EC PRIVATE KEY-----\n" + canary}}, "ConfigMap", "key: (hidden)"},
		"a token in a Pod":        {&corev1.Pod{ObjectMeta: plain, Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--header=Bearer " + canary + "-0123456789"}}}}}, "Pod", "args:\n    - (hidden)"},
		"a service account's JWT": {&corev1.ConfigMap{ObjectMeta: plain, Data: map[string]string{"t": "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0." + canary}}, "ConfigMap", "t: (hidden)"},
	} {
		p := program{controlled: controlled{kind: schema.GroupKind{Kind: c.kind}}, obj: c.obj, kind: schema.GroupVersionKind{Version: "v1", Kind: c.kind}}
		got := inspect.ObjectOf(p, "website", "shop/web")
		if got == nil || strings.Contains(got.YAML, canary) || !strings.Contains(got.YAML, c.shows) || strings.Contains(got.YAML, "aHVudGVy") {
			t.Errorf("%s is shown as %+v; want %q, and not its value", name, got, c.shows)
		}
	}
}

// Errors and reasons are text of anybody, and may repeat a credential.
func TestHandler_ErrorsHideSecrets_M25(t *testing.T) {
	const canary = "hunter2-canary"
	wrong := "vault: 403 for Bearer " + canary
	p := program{}
	p.recorded = []reconcile.KeyRuns{{Key: "shop/web", Outcome: reconcile.OutcomeError, Err: wrong}}
	p.runs = []reconcile.PastRun{{Err: wrong, Reason: "token=" + canary, Causes: reconcile.Causes{Count: 1, First: source.Cause{Source: source.Retry, Reason: wrong}}}}
	p.parts.Members = []inspect.Member{{Name: "mailer", Error: wrong}}
	for _, path := range []string{"overview", "controllers/website/keys", "controllers/website/key?key=shop/web"} {
		w := httptest.NewRecorder()
		inspect.Handler(p).ServeHTTP(w, httptest.NewRequest(http.MethodGet, inspect.Path+path, nil))
		if body := w.Body.String(); strings.Contains(body, canary) || !strings.Contains(body, "(hidden)") {
			t.Errorf("%s shows %s", path, body)
		}
	}
}
