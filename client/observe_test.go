// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
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
	update := func(c *client.Client) error { return c.Update(ctx, configMap("prod", "web", nil)) }
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
		{"status update", func(c *client.Client) error { return c.Status().Update(ctx, website("prod", "web")) }, site(""), "Stored u@7"},
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
		{"update of a namespace that is going", func(c *client.Client) error { return c.Update(ctx, namespace("prod")) }, namespaceAnswer, "Stored u@7"},
		{"a namespace loses its last finalizer", func(c *client.Client) error { return c.Update(ctx, unstructuredNamespace()) }, freeNamespace, "Removed u@7"},

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
		}, thing("meta.k8s.io/v1", "PartialObjectMetadata", "", ""), "Touched u@7"},

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
		{"delete all of, Status", removeAll, gone(``), ""},

		{"dry run", func(c *client.Client) error {
			return c.Update(ctx, configMap("prod", "web", nil), client.DryRun{})
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
			return c.Get(ctx, informer.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{})
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
				if (w.Object != nil) != (w.Effect == informer.Stored) {
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

func describe(w informer.Written) string {
	effect := map[informer.WriteEffect]string{informer.Stored: "Stored", informer.Removed: "Removed", informer.Touched: "Touched"}[w.Effect]
	return fmt.Sprintf("%s %s@%d", effect, w.UID, w.Version)
}

func TestClient_FailedWritesAreNotTold_R4(t *testing.T) {
	r := &recorder{}
	c, _ := scripted(t, client.Options{Observer: r},
		status(422, "Invalid", "no", ""), status(404, "NotFound", "no", ""), status(500, "InternalError", "no", ""))
	for range 3 {
		if err := c.Update(t.Context(), configMap("prod", "web", nil)); err == nil {
			t.Fatal("got no error from a refused update")
		}
	}
	if got := r.take(); len(got) != 0 {
		t.Errorf("the observer was told %v, want nothing: nothing was written", got)
	}
}

func TestClient_ObserverGetsItsOwnCopy_R4(t *testing.T) {
	answer := reply{body: thing("v1", "ConfigMap", `"labels":{"a":"1"}`, `"data":{"k":"1"}`)}
	for _, row := range []struct {
		name string
		call func(c *client.Client, obj *corev1.ConfigMap) error
	}{
		{"create", func(c *client.Client, obj *corev1.ConfigMap) error { return c.Create(t.Context(), obj) }},
		{"update", func(c *client.Client, obj *corev1.ConfigMap) error { return c.Update(t.Context(), obj) }},
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
