// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/kube"
)

// spanned is a reconcile with a span.
type spanned struct {
	contextvalues.Task
	span string
}

func (s spanned) TraceContext() string { return s.span }

func (spanned) Effected(kube.Written, kube.Version) {}

func inSpan(t *testing.T, name string) context.Context {
	return context.WithValue(t.Context(), contextvalues.TaskKey{}, spanned{span: `{"traceparent":"` + name + `"}`})
}

// shelf is an Observer that has one object in its cache.
type shelf struct{ held kube.Object }

func (shelf) Observe(kube.Written) {}

func (shelf) WhenPassed(schema.GroupVersionKind, kube.Key, kube.Version, func()) func() {
	return func() {}
}

func (shelf) WatchedKind(r schema.GroupVersionResource) (schema.GroupVersionKind, bool) {
	return schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, r.Resource == "configmaps"
}

func (s shelf) Cached(schema.GroupVersionKind, kube.Key, kube.Object) kube.Object { return s.held }

// asTree is obj without its Go type, as which it is sent in JSON.
func asTree(t *testing.T, obj kube.Object) *unstructured.Unstructured {
	t.Helper()
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: tree}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	return u
}

func annotationIn(t *testing.T, body string) string {
	var sent struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal([]byte(body), &sent); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return sent.Metadata.Annotations[kube.TraceContextAnnotation]
}

// What a reconcile creates names its span; applies that follow keep it, or each would be a change.
func TestClient_PropagatesTheTrace(t *testing.T) {
	propagate := client.Options{FieldOwner: "website", PropagateTrace: true}
	watching := propagate
	watching.Observer = shelf{}
	answer := reply{body: thing("v1", "ConfigMap", "", "")}
	website := func() *corev1.ConfigMap { return configMap("prod", "web", nil) }
	own := website()
	own.Annotations = map[string]string{kube.TraceContextAnnotation: "mine"}
	for _, row := range []struct {
		name  string
		opts  client.Options
		calls func(c *client.Client) error
		want  []string
	}{
		{"create", propagate, func(c *client.Client) error { return c.Create(inSpan(t, "a"), asTree(t, website())) }, []string{`{"traceparent":"a"}`}},
		{"create outside of a span", propagate, func(c *client.Client) error { return c.Create(t.Context(), asTree(t, website())) }, []string{""}},
		{"its own", propagate, func(c *client.Client) error { return c.Apply(inSpan(t, "a"), own.DeepCopy()) }, []string{"mine"}},
		{"not asked for", client.Options{FieldOwner: "website"}, func(c *client.Client) error { return c.Apply(inSpan(t, "a"), website()) }, []string{""}},
		{"an apply of a kind that is not watched", propagate, func(c *client.Client) error { return c.Apply(inSpan(t, "a"), website()) }, []string{""}},
		{"an apply of what there is not", watching, func(c *client.Client) error { return c.Apply(inSpan(t, "a"), website()) }, []string{`{"traceparent":"a"}`}},
	} {
		c, s := scripted(t, row.opts, answer, answer)
		if err := row.calls(c); err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		for i, want := range row.want {
			if got := annotationIn(t, s.requests()[i].body); got != want {
				t.Errorf("%s: request %d has %q, want %q", row.name, i, got, want)
			}
		}
	}
}

// An object that is cached keeps its trace, or its lack of one.
func TestClient_ACachedObjectKeepsItsTrace(t *testing.T) {
	for _, was := range []string{"", `{"traceparent":"first"}`} {
		held := configMap("prod", "web", nil)
		if was != "" {
			held.Annotations = map[string]string{kube.TraceContextAnnotation: was}
		}
		cache := shelf{held}
		c, s := scripted(t, client.Options{FieldOwner: "website", PropagateTrace: true, Observer: cache}, reply{body: thing("v1", "ConfigMap", "", "")})
		if err := c.Apply(inSpan(t, "second"), configMap("prod", "web", nil)); err != nil {
			t.Fatal(err)
		}
		if got := annotationIn(t, s.requests()[0].body); got != was {
			t.Errorf("the object has %q, and the apply sends %q", was, got)
		}
	}
}
