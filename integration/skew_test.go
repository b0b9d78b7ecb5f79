// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// narrowWidget is a Widget as a program knows it that is older than the kind's spec.
type narrowWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

func (w *narrowWidget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

var _ = Describe("a write by a Go type that does not know all fields", func() {
	It("leaves the caches of other representations whole, under a watch that is 400 ms late (C2)", Label("C2"), func(ctx context.Context) {
		ns := newNamespace(ctx)
		cfg := newLagging(env.Config(), 400*time.Millisecond)
		p := newProcess(cfg, ns)
		typed := informer.For[*widget](p.Informers()).Lister()
		plain := informer.ForKind(p.Informers(), group.WithKind("Widget")).Lister()
		narrow := runtime.NewScheme()
		narrow.AddKnownTypeWithName(group.WithKind("Widget"), &narrowWidget{})
		c, err := client.New(cfg, narrow, client.Options{Observer: p.Informers(), FieldOwner: "narrow"})
		Expect(err).NotTo(HaveOccurred())
		Expect(outside.Create(ctx, newWidget(ns, "a", "keep me"))).To(Succeed())
		p.start()
		Expect(p.Informers().WaitForSync(ctx)).Error().NotTo(HaveOccurred())

		key := kube.Key{Namespace: ns, Name: "a"}
		labelled := func(w *narrowWidget, value string) *narrowWidget {
			out := w.DeepCopyObject().(*narrowWidget)
			out.Labels = map[string]string{"by": value}
			return out
		}
		for _, write := range []struct {
			name string
			call func(w *narrowWidget) error
		}{
			{"Patch", func(w *narrowWidget) error {
				return c.Patch(ctx, w, client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"by": "patch"}}}))
			}},
			{"PatchChanges", func(w *narrowWidget) error {
				_, err := c.PatchChanges(ctx, w, labelled(w, "changes"))
				return err
			}},
			{"Apply", func(*narrowWidget) error {
				w := &narrowWidget{}
				w.Namespace, w.Name = ns, "a"
				return c.Apply(ctx, labelled(w, "apply"), client.Force{})
			}},
			{"SetFinalizers", func(w *narrowWidget) error { return c.SetFinalizers(ctx, w, []string{"example.com/held"}) }},
			{"Delete", func(w *narrowWidget) error { return c.Delete(ctx, w) }},
		} {
			w := &narrowWidget{}
			Expect(c.Get(ctx, key, w)).To(Succeed(), write.name)
			Expect(write.call(w)).To(Succeed(), write.name)
			is := &widget{}
			Expect(outside.Get(ctx, key, is)).To(Succeed(), write.name)
			Expect(is.Spec.Value).To(Equal("keep me"), "%s removes what it does not know", write.name)
			whole := func() (versions []string, err error) {
				w, err := typed.Get(key)
				u, err2 := plain.Get(key)
				if err := errors.Join(err, err2); err != nil {
					return nil, err // not settled yet
				}
				value, _, _ := unstructured.NestedString(u.Object, "spec", "value")
				if w.Spec.Value != "keep me" || value != "keep me" {
					StopTrying("a cache has lost a field by " + write.name).Now()
				}
				return []string{w.ResourceVersion, u.GetResourceVersion()}, nil
			}
			Eventually(whole).Should(HaveEach(is.ResourceVersion), write.name)
		}
		held := &widget{}
		Expect(outside.Get(ctx, key, held)).To(Succeed())
		Expect(outside.SetFinalizers(ctx, held, nil)).To(Succeed())
		p.ends()
	})
})
