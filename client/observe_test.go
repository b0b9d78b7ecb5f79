// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/kube"
)

// thing returns an answer: an object of the kind in prod/web with UID u and version 7,
// and more fields of metadata and of the object.
func thing(apiVersion, kind, metadata, fields string) string {
	if metadata != "" {
		metadata = "," + metadata
	}
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":"prod","name":"web","uid":"u","resourceVersion":"7"%s}%s}`,
		apiVersion, kind, metadata, fields)
}

const (
	dying    = `"deletionTimestamp":"2026-01-01T00:00:00Z"`
	held     = `"finalizers":["example.com/a"]`
	graceful = `"deletionGracePeriodSeconds":30`
	graceOut = `"deletionGracePeriodSeconds":0`
)

func TestClient_ObserverLearnsWhatEachAnswerMeans_R4(t *testing.T) {
	ctx := context.Background()
	cm := func(metadata string) string { return thing("v1", "ConfigMap", metadata, "") }
	pods := func(metadata string) string { return thing("v1", "Pod", metadata, "") }
	site := func(metadata string) string { return thing("example.com/v1", "Website", metadata, "") }
	gone := func(details string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Success","details":{` + details + `}}`
	}
	update := func(c *client.Client) error { return c.Update(ctx, asRead(configMap("prod", "web", nil))) }
	create := func(c *client.Client) error { return c.Create(ctx, configMap("prod", "web", nil)) }
	patch := func(c *client.Client) error {
		return c.Patch(ctx, configMap("prod", "web", nil), client.MergePatch([]byte(`{}`)))
	}
	apply := func(c *client.Client) error { return c.Apply(ctx, configMap("prod", "web", nil)) }
	applyConfiguration := func(c *client.Client) error { return c.Apply(ctx, coreac.ConfigMap("web", "prod")) }
	remove := func(c *client.Client) error { return c.Delete(ctx, configMap("prod", "web", nil)) }
	removeKnown := func(c *client.Client) error {
		obj := configMap("prod", "web", nil)
		obj.UID = "known"
		return c.Delete(ctx, obj)
	}
	removePod := func(c *client.Client) error { return c.Delete(ctx, pod("prod", "web")) }
	removeAll := func(c *client.Client) error {
		return client.DeleteAllOf[*corev1.ConfigMap](ctx, c, client.InNamespace("prod"))
	}
	unstructuredNamespace := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(namespaceKind)
		u.SetName("prod")
		return u
	}
	const namespaceAnswer = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"prod","uid":"u","resourceVersion":"7",` + dying + `},"spec":{"finalizers":["kubernetes"]}}`
	const freeNamespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"prod","uid":"u","resourceVersion":"7",` + dying + `}}`

	for _, row := range []struct {
		name   string
		call   func(*client.Client) error
		answer string
		want   string // effect UID@version; several in order; empty: none
	}{
		{"create", create, cm(""), "Stored u@7"},
		{"update", update, cm(""), "Stored u@7"},
		{"patch", patch, cm(""), "Stored u@7"},
		{"apply of a typed object", apply, cm(""), "Stored u@7"},
		{"apply of a configuration", applyConfiguration, cm(""), "Stored u@7"},
		{"status update", func(c *client.Client) error { return c.Status().Update(ctx, asRead(website("prod", "web"))) }, site(""), "Stored u@7"},
		{"status patch", func(c *client.Client) error {
			return c.Status().Patch(ctx, website("prod", "web"), client.MergePatch([]byte(`{}`)))
		}, site(""), "Stored u@7"},
		{"status apply", func(c *client.Client) error { return c.Status().Apply(ctx, website("prod", "web")) }, site(""), "Stored u@7"},
		{"a version that is no number", update, strings.Replace(cm(""), `"7"`, `"x"`, 1), "Stored u@0"},
		{"update of what waits for finalizers", update, cm(dying + "," + held), "Stored u@7"},
		{"update of what is in its grace period", update, cm(dying + "," + graceful), "Stored u@7"},
		{"the last finalizer goes", update, cm(dying), "Removed u@7"},
		{"the last finalizer goes, by patch", patch, cm(dying + "," + graceOut), "Removed u@7"},
		{"the last finalizer goes, by apply", applyConfiguration, cm(dying), "Removed u@7"},
		{"the last finalizer goes, by SetFinalizers", func(c *client.Client) error {
			obj := configMap("prod", "web", nil)
			obj.UID, obj.ResourceVersion = "u", "6"
			return c.SetFinalizers(ctx, obj, nil)
		}, cm(dying), "Removed u@7"},

		{"delete, Status with UID", remove, gone(`"uid":"u"`), "Removed u@0"},
		{"delete, Status with UID other than known", removeKnown, gone(`"uid":"u"`), "Removed u@0"},
		{"delete, Status without UID, known", removeKnown, gone(``), "Removed known@0"},
		{"delete, Status without UID, by precondition", func(c *client.Client) error {
			return c.Delete(ctx, configMap("prod", "web", nil), client.Preconditions{UID: "asked"})
		}, gone(``), "Removed asked@0"},
		{"delete, Status without UID, unknown", remove, gone(``), "Touched @0"},
		{"delete, nothing but a status code", removeKnown, "", "Touched known@0"},
		{"delete, a living-looking object", remove, cm(""), "Removed u@7"},
		{"delete, an object with deletionTimestamp alone", remove, cm(dying), "Removed u@7"},
		{"delete, finalizers", remove, cm(dying + "," + held), "Stored u@7"},
		{"delete, finalizers and no grace", remove, cm(dying + "," + held + "," + graceOut), "Stored u@7"},
		{"delete, grace period", removePod, pods(dying + "," + graceful), "Stored u@7"},
		{"delete, no grace left", removePod, pods(dying + "," + graceOut), "Removed u@7"},
		{"delete, answer of another kind", removeKnown, thing("v1", "Secret", "", ""), "Touched known@0"},
		{"delete by metadata", func(c *client.Client) error {
			m := &metav1.PartialObjectMetadata{ObjectMeta: at("prod", "web")}
			m.SetGroupVersionKind(websiteKind)
			return c.Delete(ctx, m)
		}, site(dying + "," + held), "Stored u@7"},

		{"delete of a namespace, its own finalizers", func(c *client.Client) error { return c.Delete(ctx, namespace("prod")) }, namespaceAnswer, "Stored u@7"},
		{"the same, unstructured", func(c *client.Client) error { return c.Delete(ctx, unstructuredNamespace()) }, namespaceAnswer, "Stored u@7"},
		{"update of a namespace that is going", func(c *client.Client) error { return c.Update(ctx, asRead(namespace("prod"))) }, namespaceAnswer, "Stored u@7"},
		{"a namespace loses its last finalizer", func(c *client.Client) error { return c.Update(ctx, asRead(unstructuredNamespace())) }, freeNamespace, "Removed u@7"},

		{"scale", func(c *client.Client) error {
			return c.SubResource("scale").Update(ctx, deployment("prod", "web"), client.Body{Object: &autoscalingv1.Scale{}})
		}, thing("autoscaling/v1", "Scale", "", ""), "Touched u@7"},
		{"scale by patch", func(c *client.Client) error {
			return c.SubResource("scale").Patch(ctx, deployment("prod", "web"), client.MergePatch([]byte(`{}`)))
		}, thing("autoscaling/v1", "Scale", "", ""), "Touched u@7"},
		{"eviction", func(c *client.Client) error {
			return c.SubResource("eviction").Create(ctx, pod("prod", "web"), &policyv1.Eviction{ObjectMeta: at("prod", "web")})
		}, gone(``), "Touched @0"},
		{"patch by metadata", func(c *client.Client) error {
			m := &metav1.PartialObjectMetadata{ObjectMeta: at("prod", "web")}
			m.SetGroupVersionKind(configMapKind)
			return c.Patch(ctx, m, client.MergePatch([]byte(`{}`)))
		}, thing("meta.k8s.io/v1", "PartialObjectMetadata", "", ""), "Stored u@7"},

		{"delete all of, list", removeAll, `{"apiVersion":"v1","kind":"ConfigMapList","items":[` + cm("") + `,` + cm(held) + `]}`, "Removed u@0, Touched u@0"},
		{"delete all of, foreground", func(c *client.Client) error {
			return client.DeleteAllOf[*corev1.ConfigMap](ctx, c, client.InNamespace("prod"), client.Propagation("Foreground"))
		}, `{"apiVersion":"v1","kind":"ConfigMapList","items":[` + cm("") + `]}`, "Touched u@0"},
		{"delete all of, pods", func(c *client.Client) error {
			return client.DeleteAllOf[*corev1.Pod](ctx, c, client.InNamespace("prod"))
		}, `{"apiVersion":"v1","kind":"PodList","items":[` + pods("") + `]}`, "Touched u@0"},
		{"delete all of, pods at once", func(c *client.Client) error {
			return client.DeleteAllOf[*corev1.Pod](ctx, c, client.InNamespace("prod"), client.GracePeriod(0))
		}, `{"apiVersion":"v1","kind":"PodList","items":[` + pods("") + `]}`, "Removed u@0"},
		{"delete all of, Status", removeAll, gone(``), "Touched @0"},

		{"dry run", func(c *client.Client) error {
			return c.Update(ctx, asRead(configMap("prod", "web", nil)), client.DryRun{})
		}, cm(""), ""},
		{"dry run of a delete", func(c *client.Client) error {
			return c.Delete(ctx, configMap("prod", "web", nil), client.DryRun{})
		}, gone(`"uid":"u"`), ""},
		{"dry run of delete all of", func(c *client.Client) error {
			return client.DeleteAllOf[*corev1.ConfigMap](ctx, c, client.InNamespace("prod"), client.DryRun{})
		}, `{"items":[` + cm("") + `]}`, ""},
		{"dry run of apply", func(c *client.Client) error {
			return c.Apply(ctx, coreac.ConfigMap("web", "prod"), client.DryRun{})
		}, cm(""), ""},
		{"get", func(c *client.Client) error {
			return c.Get(ctx, kube.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{})
		}, cm(""), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := &recorder{}
			c, s := scripted(t, client.Options{Observer: r, FieldOwner: "test"}, reply{body: row.answer})
			if err := row.call(c); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range r.take() {
				got = append(got, describe(w))
				if (w.Object != nil) != (w.Effect == kube.Stored) {
					t.Errorf("%v carries object %v; a Stored write does, others do not", w.Effect, w.Object)
				}
			}
			if got := strings.Join(got, ", "); got != row.want {
				t.Errorf("the observer was told %q, want %q", got, row.want)
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("%d requests, want 1: nothing but the call asks the server", n)
			}
		})
	}
}

func describe(w kube.Written) string {
	return fmt.Sprintf("%s %s@%d", effectName(w), w.UID, w.Version)
}

func effectName(w kube.Written) string {
	return map[kube.WriteEffect]string{kube.Stored: "Stored", kube.Removed: "Removed", kube.Touched: "Touched"}[w.Effect]
}

// A write that failed is reported exactly if it may have taken effect.
func TestClient_LostWritesAreReported_C14(t *testing.T) {
	ctx := t.Context()
	refused := status(422, "Invalid", "no", "")
	broken := status(500, "InternalError", "no", "")
	again := reply{code: 503, body: broken.body, header: http.Header{"Retry-After": {"1"}}}
	cut := reply{body: "{", header: http.Header{}}
	const all = "Touched prod/ @0"
	calls := map[string]struct {
		call func(c *client.Client) error
		lost string
	}{
		"create": {func(c *client.Client) error { return c.Create(ctx, configMap("prod", "web", nil)) }, "Touched prod/web @0"},
		"update": {func(c *client.Client) error { return c.Update(ctx, asRead(configMap("prod", "web", nil))) }, "Touched prod/web @0"},
		"patch": {func(c *client.Client) error {
			return c.Patch(ctx, configMap("prod", "web", nil), client.MergePatch([]byte(`{}`)))
		}, "Touched prod/web @0"},
		"apply":  {func(c *client.Client) error { return c.Apply(ctx, configMap("prod", "web", nil)) }, "Touched prod/web @0"},
		"status": {func(c *client.Client) error { return c.Status().Update(ctx, asRead(website("prod", "web"))) }, "Touched prod/web @0"},
		"delete": {func(c *client.Client) error { return c.Delete(ctx, configMap("prod", "web", nil)) }, "Touched prod/web @0"},
		"evict":  {func(c *client.Client) error { return c.Evict(ctx, pod("prod", "web")) }, "Touched prod/web @0"},
		"delete all of": {func(c *client.Client) error {
			return client.DeleteAllOf[*corev1.ConfigMap](ctx, c, client.InNamespace("prod"))
		}, all},
		"dry run": {func(c *client.Client) error {
			return c.Update(ctx, asRead(configMap("prod", "web", nil)), client.DryRun{})
		}, ""},
		"get": {func(c *client.Client) error {
			return c.Get(ctx, kube.Key{Namespace: "prod", Name: "web"}, configMap("", "", nil))
		}, ""},
	}
	for name, row := range calls {
		for answer, tc := range map[string]struct {
			replies []reply
			lost    bool
		}{
			"refused":                  {[]reply{refused}, false},
			"an error of the server":   {[]reply{broken}, true},
			"no connection, as it was": {[]reply{{fails: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}}, false},
			"a reset connection":       {[]reply{{fails: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}}, true},
			"half an answer":           {[]reply{cut}, true},
		} {
			r := &recorder{}
			c, _ := scripted(t, client.Options{Observer: r, FieldOwner: "test", RetryWithin: -1}, tc.replies...)
			if err := row.call(c); err == nil {
				t.Errorf("%s, %s: no error", name, answer)
			}
			want := ""
			if tc.lost {
				want = row.lost
			}
			var got []string
			for _, w := range r.take() {
				got = append(got, fmt.Sprintf("%s %s/%s @%d", effectName(w), w.Key.Namespace, w.Key.Name, w.Version))
			}
			if got := strings.Join(got, ", "); got != want {
				t.Errorf("%s, %s: the Observer received %q, want %q", name, answer, got, want)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		c, s := scripted(t, client.Options{Observer: r}, again, refused)
		obj := configMap("prod", "web", nil)
		obj.ResourceVersion = "5"
		if err := c.Update(t.Context(), obj); err == nil || len(s.requests()) != 2 {
			t.Fatalf("%v after %d requests, want the error of the second", err, len(s.requests()))
		}
		if got := r.take(); len(got) != 1 || got[0].Effect != kube.Touched {
			t.Errorf("the Observer received %v, want Touched: the first attempt may have taken effect", got)
		}
	})
}

// The client chooses the name of an object with a generateName, so that it is known also
// if the answer is lost.
func TestCreate_GeneratedNameIsChosenByTheClient_C14(t *testing.T) {
	taken := status(409, "AlreadyExists", "taken", "")
	unnamed := func() *corev1.ConfigMap {
		obj := configMap("prod", "", nil)
		obj.GenerateName = strings.Repeat("w", 60) + "-"
		return obj
	}
	r := &recorder{}
	c, s := scripted(t, client.Options{Observer: r}, taken, reply{fails: io.ErrUnexpectedEOF})
	obj := unnamed()
	if err := c.Create(t.Context(), obj); err == nil || obj.Name != "" {
		t.Errorf("created %q, %v; want an error, and the object unchanged", obj.Name, err)
	}
	names := map[string]bool{}
	for _, q := range s.requests() {
		var sent corev1.ConfigMap
		if _, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode([]byte(q.body), nil, &sent); err != nil {
			t.Fatal(err)
		}
		names[sent.Name] = true
		if len(sent.Name) != 63 || !strings.HasPrefix(sent.Name, strings.Repeat("w", 58)) || sent.GenerateName != unnamed().GenerateName {
			t.Errorf("sent the name %q (%d), want 58 characters of the generateName and five others", sent.Name, len(sent.Name))
		}
	}
	if told := r.take(); len(names) != 2 || len(told) != 1 || !names[told[0].Key.Name] {
		t.Errorf("sent the names %v and reported %v; want two, and the second reported", names, told)
	}
	many := make([]reply, 20)
	for i := range many {
		many[i] = taken
	}
	c, s = scripted(t, client.Options{}, many...)
	if err := c.Create(t.Context(), unnamed()); !apierrors.IsAlreadyExists(err) || len(s.requests()) != 8 {
		t.Errorf("%v after %d requests, want AlreadyExists after eight names", err, len(s.requests()))
	}
}

func TestClient_ObserverGetsItsOwnCopy_R4(t *testing.T) {
	answer := reply{body: thing("v1", "ConfigMap", `"labels":{"a":"1"}`, `"data":{"k":"1"}`)}
	for _, row := range []struct {
		name string
		call func(c *client.Client, obj *corev1.ConfigMap) error
	}{
		{"create", func(c *client.Client, obj *corev1.ConfigMap) error { return c.Create(t.Context(), obj) }},
		{"update", func(c *client.Client, obj *corev1.ConfigMap) error { return c.Update(t.Context(), asRead(obj)) }},
		{"patch", func(c *client.Client, obj *corev1.ConfigMap) error {
			return c.Patch(t.Context(), obj, client.MergePatch([]byte(`{}`)))
		}},
		{"apply", func(c *client.Client, obj *corev1.ConfigMap) error { return c.Apply(t.Context(), obj) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := &recorder{}
			c, _ := scripted(t, client.Options{Observer: r, FieldOwner: "test"}, answer)
			obj := configMap("prod", "web", map[string]string{"k": "0"})
			if err := row.call(c, obj); err != nil {
				t.Fatal(err)
			}
			obj.Data["k"], obj.Labels["a"] = "changed by the caller", "changed by the caller"
			seen, ok := r.take()[0].Object.(*corev1.ConfigMap)
			if !ok || seen.Data["k"] != "1" || seen.Labels["a"] != "1" {
				t.Errorf("the observer holds %v, want k=1, a=1: the caller's changes must not reach it", seen)
			}
		})
	}
}

func TestClient_ObserverIsToldBeforeTheWriteReturns_C2(t *testing.T) {
	r := &recorder{}
	c, _ := scripted(t, client.Options{Observer: r}, reply{body: thing("v1", "ConfigMap", "", "")})
	if err := c.Create(t.Context(), configMap("prod", "web", nil)); err != nil {
		t.Fatal(err)
	}
	if got := r.take(); len(got) != 1 {
		t.Errorf("when Create returned the observer had been told %d writes, want 1: the next reconcile would not see it", len(got))
	}
}

// rider notes to whom requests say that their sender reports.
type rider struct {
	http.RoundTripper
	to []any
}

func (r *rider) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		r.to = append(r.to, effects.ReportedTo(req.Context()))
	}
	return r.RoundTripper.RoundTrip(req)
}

func TestClient_SaysToWhomItReports_C15(t *testing.T) {
	observer := &recorder{}
	for name, row := range map[string]struct {
		observer client.Observer
		want     any
	}{
		"an Observer": {observer, observer},
		"none":        {nil, nil},
	} {
		r := &rider{RoundTripper: &script{answers: []reply{{body: thing("v1", "ConfigMap", "", "")}}}}
		c, err := client.New(&rest.Config{Host: "http://api.test", Transport: r}, testScheme(t), client.Options{Observer: row.observer})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Update(t.Context(), asRead(configMap("prod", "web", nil))); err != nil {
			t.Fatal(err)
		}
		if len(r.to) != 1 || r.to[0] != row.want {
			t.Errorf("%s: the request says that its sender reports to %v, want %v", name, r.to, row.want)
		}
	}
}
