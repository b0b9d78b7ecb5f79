// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/console"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate"
)

// cluster is a simulated one in which roles decide: alice may pause and resume the controller
// website, bob may read, and the operator everything.
type cluster struct {
	t      *testing.T
	config *rest.Config
	client *client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	server := simulate.New(simulate.Options{Authorization: true, Tokens: map[string]simulate.User{
		"operator": {Name: "operator", Groups: []string{"system:masters"}}, "ta": {Name: "alice"}, "tb": {Name: "bob"},
	}})
	role := func(name, user, verb string, paths ...string) {
		for _, obj := range []kube.Object{
			&rbacv1.ClusterRole{
				TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: name},
				Rules: []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{verb}}},
			},
			&rbacv1.ClusterRoleBinding{
				TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
			},
		} {
			if _, err := server.Put(obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	const at = "/debug/flyball/v1/controllers/website/"
	role("alice-acts", "alice", "post", at+"pause", at+"resume", at+"run", strings.Replace(at, "v1/", "", 1)+"pause")
	role("alice-reads", "alice", "get", "/debug/flyball/*")
	role("bob-reads", "bob", "get", "/debug/flyball/*")
	network := simulate.NewNetwork()
	cfg := &rest.Config{Host: "http://simulated", Transport: network.Transport(), QPS: -1, BearerToken: "operator"}
	api, err := client.New(cfg, scheme.Scheme, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Run(ctx, network.Listener()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { end(); serving.Wait() })
	return &cluster{t, cfg, api}
}

// eventually waits until a condition holds, or the test is over.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it did not happen before the end of the test")
		}
	}
}

// replica is a running operator with a controller of ConfigMaps in the namespace default.
type replica struct {
	*manager.Manager
	t    *testing.T
	c    *reconcile.ObjectController[*corev1.ConfigMap]
	runs atomic.Int64
	stop func()
}

func (c *cluster) start(as manager.Serving, election *manager.LeaderElection) *replica {
	c.t.Helper()
	as.Actions = true
	mgr, err := manager.New(manager.Options{
		Config: c.config, HealthAddress: "0", MetricsAddress: "127.0.0.1:0", MetricsServing: as, LeaderElection: election,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	r := &replica{Manager: mgr, t: c.t}
	maps := informer.For[*corev1.ConfigMap](mgr.Informers(), informer.Scope{Namespaces: []string{"default"}})
	r.c = reconcile.For(maps, func(context.Context, *corev1.ConfigMap) (reconcile.Result, error) {
		r.runs.Add(1)
		return reconcile.After(time.Hour, "poll"), nil
	}, reconcile.Options{Name: "website"})
	if err := mgr.Add(r.c); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
	c.t.Cleanup(r.stop)
	eventually(c.t, func() bool { return mgr.MetricsAddr() != "" })
	return r
}

var noRedirect = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func (r *replica) send(method, path, token string, headers ...string) (code int, body string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.MetricsAddr()+"/debug/flyball/"+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	answer, err := noRedirect.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.StatusCode, string(text) + answer.Header.Get("Location")
}

func (r *replica) post(path string) (code int, body string) {
	r.t.Helper()
	return r.send(http.MethodPost, path, "ta")
}

func (r *replica) leads() bool { return r.Snapshot().Leadership.Leading }

func election() *manager.LeaderElection {
	return &manager.LeaderElection{ID: "website", Namespace: "default"}
}

// An action needs a token, the right to post to its very path, and a page of the same origin.
func TestActions_AreForTheAuthorizedOfTheSameOrigin_M27(t *testing.T) {
	c := newCluster(t)
	r := c.start(manager.Serving{Guard: true, Console: console.Handler}, election())
	eventually(t, r.leads)
	own := "http://" + r.MetricsAddr()
	for _, a := range []struct {
		method, path, token string
		headers             []string
		code                int
		says                string
	}{
		{"POST", "v1/controllers/website/pause", "", nil, 401, "Unauthorized"},
		{"POST", "v1/controllers/website/pause", "nobody", nil, 401, "Unauthorized"},
		{"POST", "v1/controllers/website/pause", "tb", nil, 403, `User \"bob\" cannot post path`},
		{"POST", "v1/controllers/website/reset-backoff?key=default/a", "ta", nil, 403, `User \"alice\" cannot post path`},
		{"POST", "v1/profile/heap", "ta", nil, 403, `User \"alice\" cannot post path`},
		{"POST", "controllers/website/resume", "ta", nil, 403, `User \"alice\" cannot post path`},
		{"POST", "v1/controllers/website/pause", "ta", []string{"Sec-Fetch-Site", "cross-site"}, 403, "another origin"},
		{"POST", "v1/controllers/website/pause", "ta", []string{"Sec-Fetch-Site", "same-site"}, 403, "another origin"},
		{"POST", "v1/controllers/website/pause", "ta", []string{"Origin", "http://evil.example"}, 403, "another origin"},
		{"POST", "controllers/website/pause", "ta", []string{"Origin", "null"}, 403, "another origin"},
		{"GET", "v1/controllers/website/pause", "ta", nil, 404, ""},
		{"GET", "v1/overview", "tb", nil, 200, `"actions":true`},
		{"POST", "v1/controllers/website/pause", "ta", []string{"Origin", own}, 200, `"changed":true`},
		{"POST", "v1/controllers/website/pause", "ta", []string{"Sec-Fetch-Site", "same-origin"}, 200, `"changed":false`},
		{"POST", "controllers/website/pause", "ta", []string{"Sec-Fetch-Site", "same-origin"}, 303, "did=pause"},
		{"GET", "controllers/website", "tb", nil, 200, "<b>Paused</b> by alice"},
	} {
		if code, body := r.send(a.method, a.path, a.token, a.headers...); code != a.code || !strings.Contains(body, a.says) {
			t.Errorf("%s %s by %q with %v: %d %s, want %d and %q", a.method, a.path, a.token, a.headers, code, body, a.code, a.says)
		}
	}
	var events []*eventsv1.Event
	eventually(t, func() bool {
		events = nil
		for e, err := range client.List[*eventsv1.Event](t.Context(), c.client) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		return len(events) > 0
	})
	if e := events[0]; len(events) != 1 || e.Regarding.Kind != "Lease" || e.Regarding.Name != "website" || e.Reason != "Paused" || !strings.Contains(e.Note, "by alice") {
		t.Errorf("the Events are %+v, want one about the Lease that names alice", events)
	}
}

// Whoever leads, and after a restart of all, what was paused is paused, until it is resumed.
func TestActions_PauseOutlivesLeaderAndRestart_M27(t *testing.T) {
	c := newCluster(t)
	if err := c.client.Create(t.Context(), configMap("default", "site")); err != nil {
		t.Fatal(err)
	}
	first := c.start(manager.Serving{Guard: true}, election())
	eventually(t, func() bool { return first.leads() && first.runs.Load() == 1 })
	second := c.start(manager.Serving{Guard: true}, election())
	eventually(t, func() bool {
		code, _ := second.post("v1/controllers/website/pause")
		return code == http.StatusOK // through a standby
	})
	eventually(t, func() bool { return first.c.Snapshot().Pauses.All != nil })
	if err := c.client.Patch(t.Context(), configMap("default", "site"), client.MergePatch([]byte(`{"data":{"a":"b"}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return first.c.Snapshot().Woken == 1 })
	if code, body := first.post("v1/controllers/website/run?key=default/site"); code != http.StatusConflict || !strings.Contains(body, "paused, by alice") {
		t.Errorf("to run a paused key: %d %s, want 409 and by whom", code, body)
	}
	if code, body := second.post("v1/controllers/website/run?key=default/site"); code != http.StatusConflict || !strings.Contains(body, "only the leader reconciles") {
		t.Errorf("to run a key on a standby: %d %s, want 409", code, body)
	}
	first.stop()
	eventually(t, func() bool { return second.leads() && second.c.Snapshot().Synced && second.c.Snapshot().Woken == 1 })
	second.stop()
	third := c.start(manager.Serving{Guard: true}, election())
	eventually(t, func() bool { return third.leads() && third.c.Snapshot().Synced && third.c.Snapshot().Woken == 1 })
	if a, b, d := first.runs.Load(), second.runs.Load(), third.runs.Load(); a != 1 || b != 0 || d != 0 {
		t.Errorf("%d, %d and %d reconciles, want none after the pause", a, b, d)
	}
	if code, body := third.post("v1/controllers/website/resume"); code != http.StatusOK {
		t.Errorf("resume: %d %s", code, body)
	}
	eventually(t, func() bool { return third.runs.Load() == 1 })
	if code, body := third.post("v1/controllers/website/run?key=default/site"); code != http.StatusOK {
		t.Errorf("run: %d %s", code, body)
	}
	eventually(t, func() bool { return third.runs.Load() == 2 })
	for key, want := range map[string]int{"default/gone": 404, "": 400, strings.Repeat("x", 2000): 400} {
		if code, body := third.post("v1/controllers/website/run?key=" + url.QueryEscape(key)); code != want {
			t.Errorf("run %.20q: %d %s, want %d", key, code, body, want)
		}
	}
}

// A Lease that is deleted is made again with what it said, and one without the annotation resumes all.
func TestActions_PauseOutlivesItsLease_M27(t *testing.T) {
	c := newCluster(t)
	r := c.start(manager.Serving{Guard: true}, election())
	eventually(t, r.leads)
	if code, body := r.post("v1/controllers/website/pause?key=default/a"); code != http.StatusOK {
		t.Fatalf("pause: %d %s", code, body)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "website"}}
	if err := c.client.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return c.client.Get(t.Context(), kube.KeyOf(lease), lease) == nil })
	if text := lease.Annotations["flyball.dev/paused"]; !strings.Contains(text, "default/a") || len(r.c.Snapshot().Pauses.Keys) != 1 {
		t.Errorf("the Lease that follows one that was deleted says %q, and the controller %+v", text, r.c.Snapshot().Pauses)
	}
	for _, value := range []string{`"{"`, "null"} { // what is malformed changes nothing
		if err := c.client.Patch(t.Context(), lease, client.MergePatch([]byte(`{"metadata":{"annotations":{"flyball.dev/paused":`+value+`}}}`))); err != nil {
			t.Fatal(err)
		}
		if value == "null" {
			eventually(t, func() bool { return len(r.c.Snapshot().Pauses.Keys) == 0 })
		} else if code, body := r.post("v1/controllers/website/pause?key=default/b"); code != http.StatusConflict || !strings.Contains(body, "is malformed") || len(r.c.Snapshot().Pauses.Keys) != 1 {
			t.Errorf("pause beside a malformed annotation: %d %s, want 409; %+v is paused", code, body, r.c.Snapshot().Pauses)
		}
	}
}

// Of people who pause and resume at once the last one wins, and each replica shows that.
func TestActions_TwoAtOnce_M27(t *testing.T) {
	c := newCluster(t)
	replicas := []*replica{c.start(manager.Serving{Guard: true}, election()), c.start(manager.Serving{Guard: true}, election())}
	eventually(t, func() bool { code, _ := replicas[0].post("v1/controllers/website/pause"); return code == http.StatusOK })
	var all sync.WaitGroup
	for _, action := range []string{"pause", "resume"} {
		for _, r := range replicas {
			all.Go(func() {
				for n := range 5 {
					if code, body := r.post(fmt.Sprintf("v1/controllers/website/%s?key=default/k%d", action, n%2)); code != http.StatusOK && code != http.StatusServiceUnavailable {
						t.Errorf("%s: %d %s", action, code, body)
					}
				}
			})
		}
	}
	all.Wait()
	lease := &coordinationv1.Lease{}
	if err := c.client.Get(t.Context(), kube.Key{Namespace: "default", Name: "website"}, lease); err != nil {
		t.Fatal(err)
	}
	var kept map[string]struct{ Keys map[string]any }
	if err := json.Unmarshal([]byte(lease.Annotations["flyball.dev/paused"]), &kept); err != nil {
		t.Fatal(err)
	}
	for _, r := range replicas {
		eventually(t, func() bool {
			p := r.c.Snapshot().Pauses
			return p.All != nil && len(p.Keys) == len(kept["website"].Keys)
		})
		for key := range kept["website"].Keys {
			if r.c.Snapshot().Pauses.Of(key) == nil {
				t.Errorf("%s is not paused, and the Lease says so", key)
			}
		}
	}
	if code, body := replicas[0].post("v1/controllers/website/pause?key=default/k0"); code != http.StatusOK || replicas[0].c.Snapshot().Pauses.Keys["default/k0"].By == "" {
		t.Errorf("%d %s: the replica that has answered does not show what it did", code, body)
	}
}

// Without leader election nothing can be paused, and the page says why. The rest works, by whoever
// reaches loopback.
func TestActions_WithoutAnElection_M27(t *testing.T) {
	c := newCluster(t)
	if err := c.client.Create(t.Context(), configMap("default", "site")); err != nil {
		t.Fatal(err)
	}
	r := c.start(manager.Serving{Console: console.Handler}, nil)
	eventually(t, func() bool { return r.runs.Load() == 1 })
	if code, body := r.send("POST", "v1/controllers/website/pause", ""); code != http.StatusConflict || !strings.Contains(body, "set Options.LeaderElection") {
		t.Errorf("pause: %d %s, want 409 and what to set", code, body)
	}
	if code, body := r.send("POST", "controllers/website/pause", ""); code != http.StatusConflict || !strings.Contains(body, `role="alert"`) {
		t.Errorf("pause on the page: %d %s, want 409 as a page", code, body)
	}
	if code, body := r.send("GET", "controllers/website/key?key=default/site", ""); code != http.StatusOK || !strings.Contains(body, "set Options.LeaderElection") || !strings.Contains(body, `id="do-run"`) {
		t.Errorf("the page is %d %s, want a button to run the key, and why it cannot be paused", code, body)
	}
	if code, body := r.send("POST", "controllers/website/run?key=default/site", ""); code != http.StatusSeeOther || !strings.Contains(body, "did=run") {
		t.Errorf("run: %d %s, want the page again", code, body)
	}
	eventually(t, func() bool { return r.runs.Load() == 2 })
	if runs := r.c.RunsOf("default/site"); len(runs) == 2 && !strings.Contains(runs[1].Causes.String(), "a user of this machine") {
		t.Errorf("the cause is %q, want who has asked", runs[1].Causes)
	}
	if code, _ := r.send("POST", "v1/controllers/website/run?key=default/site", "", "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
		t.Errorf("a page of another origin: %d, want 403: on loopback there is no token to ask for", code)
	}
}

// A profile has no value of the program.
func TestActions_ProfilesHaveNoValues_M27(t *testing.T) {
	const canary = "hunter2-canary"
	c := newCluster(t)
	r := c.start(manager.Serving{}, nil)
	done := make(chan struct{})
	defer close(done)
	go func(string) { <-done }(canary)
	for path, want := range map[string]struct {
		code int
		has  string
	}{
		"heap": {200, "\x1f\x8b"}, "goroutine": {200, "\x1f\x8b"}, "goroutine?debug=1": {200, "goroutine profile: total"},
		"heap?debug=1": {200, "heap profile"}, "goroutine?debug=2": {400, "debug is"}, "cmdline": {404, "take heap or goroutine"}, "threadcreate": {404, "take heap"},
	} {
		code, body := r.send("POST", "v1/profile/"+path, "")
		if code != want.code || !strings.Contains(body, want.has) || strings.Contains(body, canary) {
			t.Errorf("%s: %d %.100q, want %d and %q", path, code, body, want.code, want.has)
		}
	}
}
