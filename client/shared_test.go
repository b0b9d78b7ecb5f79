// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// cached returns a client whose informers hold obj in three representations, and the
// objects of their Listers.
func cached(t *testing.T, kind schema.GroupVersionKind, obj kube.Object, answers ...reply) (c *client.Client, s *script, held []kube.Object) {
	t.Helper()
	informers, err := informer.NewSharedInformerFactory(&rest.Config{Host: "http://api.test", Transport: &script{}}, testScheme(t), informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listers := []informer.Lister[kube.Object]{}
	metadata := &metav1.PartialObjectMetadata{}
	loose := &unstructured.Unstructured{}
	for _, like := range []kube.Object{obj, loose, metadata} {
		like.GetObjectKind().SetGroupVersionKind(kind)
		listers = append(listers, informer.ForObject(informers, like).Lister())
	}
	obj.SetUID("u")
	obj.SetResourceVersion("5")
	informers.Observe(stored(t, kind, kube.Copy(obj)))
	for _, l := range listers {
		got, err := l.Get(kube.KeyOf(obj))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, got)
	}
	c, s = scripted(t, client.Options{Observer: informers, FieldOwner: "me"}, answers...)
	return c, s, held
}

// Each call that would fill an object of the cache is refused before anything is sent,
// in each representation.
func TestClient_ObjectOfTheCacheIsNotFilled_C11(t *testing.T) {
	c, s, held := cached(t, websiteKind, website("prod", "web"))
	ctx := t.Context()
	for _, obj := range held {
		obj.SetLabels(map[string]string{"changed": "in place"})
		calls := map[string]func() error{
			"create":        func() error { return c.Create(ctx, obj) },
			"patch":         func() error { return c.Patch(ctx, obj, client.MergePatch([]byte(`{}`))) },
			"patch from":    func() error { return c.Patch(ctx, obj, client.MergeFrom(kube.Copy(obj))) },
			"changes":       func() error { return second(c.PatchChanges(ctx, kube.Copy(obj), obj)) },
			"mutate":        func() error { return second(c.CreateOrUpdate(ctx, obj, func() error { return nil })) },
			"get":           func() error { return c.Get(ctx, kube.KeyOf(obj), obj) },
			"status patch":  func() error { return c.Status().Patch(ctx, obj, client.MergePatch([]byte(`{}`))) },
			"status get":    func() error { return c.Status().Get(ctx, kube.Copy(obj), obj) },
			"status body":   func() error { return c.Status().Update(ctx, kube.Copy(obj), client.Body{Object: obj}) },
			"status create": func() error { return c.SubResource("status").Create(ctx, kube.Copy(obj), obj) },
			"dry run":       func() error { return c.Patch(ctx, obj, client.MergePatch([]byte(`{}`)), client.DryRun{}) },
			"confined": func() error {
				return c.With(client.InNamespace("prod")).Patch(ctx, obj, client.MergePatch([]byte(`{}`)))
			},
			"update":        func() error { return c.Update(ctx, obj) },
			"status update": func() error { return c.Status().Update(ctx, obj) },
			"apply":         func() error { return c.Apply(ctx, obj) },
			"status apply":  func() error { return c.Status().Apply(ctx, obj) },
		}
		for name, call := range calls {
			err := call()
			var shared *client.SharedObjectError
			if !errors.As(err, &shared) || shared.Key != kube.KeyOf(obj) || !strings.Contains(err.Error(), "kube.Copy(obj)") || !strings.Contains(err.Error(), "Website prod/web") {
				t.Errorf("%s of a %T of the cache: %v, want a *SharedObjectError that names the object and kube.Copy", name, obj, err)
			}
		}
	}
	if got := len(s.requests()); got != 0 {
		t.Errorf("%d requests were sent, want none: %v", got, s.requests())
	}
}

// A copy can be written, and an object that is only named may be the cache's.
func TestClient_CopiesAndNamesOfTheCacheAreFine_C11(t *testing.T) {
	answer := reply{body: thing("v1", "ConfigMap", `"namespace":"prod","name":"c","uid":"u","resourceVersion":"6"`, `"data":{"k":"v"}`)}
	c, s, held := cached(t, configMapKind, configMap("prod", "c", nil), answer, answer, answer, answer)
	ctx := t.Context()
	obj := held[0].(*corev1.ConfigMap)
	for name, err := range map[string]error{
		"update of a copy":          c.Update(ctx, kube.Copy(obj)),
		"patch from the cache's":    c.Patch(ctx, kube.Copy(obj), client.MergeFrom(obj)),
		"finalizers of the cache's": c.SetFinalizers(ctx, obj, []string{"example.com/a"}),
		"deletion of the cache's":   c.Delete(ctx, obj),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := len(s.requests()); got != 4 {
		t.Errorf("%d requests were sent, want 4", got)
	}
	if obj.ResourceVersion != "5" {
		t.Errorf("the object of the cache is at version %s, want it untouched at 5", obj.ResourceVersion)
	}
}

// stored returns the effect of a write that the server answered with obj.
func stored(t testing.TB, kind schema.GroupVersionKind, obj kube.Object) kube.Written {
	t.Helper()
	obj.GetObjectKind().SetGroupVersionKind(kind)
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return kube.Written{
		Kind: kind, Effect: kube.Stored, Key: kube.KeyOf(obj), UID: obj.GetUID(), Version: kube.ParseVersion(obj.GetResourceVersion()),
		Object: obj, Decode: func(into kube.Object) error { return json.Unmarshal(data, into) },
	}
}
