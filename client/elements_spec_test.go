// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

var _ = Describe("a Go type that is older than the CustomResourceDefinition", func() {
	It("changes elements of a list without their other fields", func(ctx SpecContext) {
		whole, _ := inNamespace(ctx, "older")
		scheme := runtime.NewScheme()
		scheme.AddKnownTypeWithName(websiteKind, &Fleet{})
		informers, err := informer.NewSharedInformerFactory(env.Config(), scheme, informer.Options{})
		Expect(err).NotTo(HaveOccurred())
		loose := informer.ForKind(informers, websiteKind).Lister() // never runs: it has own writes alone
		c, err := client.New(env.Config(), scheme, client.Options{Observer: informers, FieldOwner: "older"})
		Expect(err).NotTo(HaveOccurred())

		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"members": []any{
			map[string]any{"name": "a", "weight": 1, "zone": "A"},
			map[string]any{"name": "b", "weight": 2, "zone": "B"},
		}}}}
		u.SetGroupVersionKind(websiteKind)
		u.SetNamespace("older")
		u.SetName("fleet")
		Expect(whole.Create(ctx, u)).To(Succeed())

		key := kube.KeyOf(u)
		from := &Fleet{}
		Expect(c.Get(ctx, key, from)).To(Succeed())
		to := kube.Copy(from)
		to.Spec.Members = []Member{{Name: "new"}, {Name: "b", Weight: 5}}
		Expect(c.PatchChanges(ctx, from, to)).To(BeTrue())

		Expect(whole.Get(ctx, key, u)).To(Succeed())
		members, _, err := unstructured.NestedSlice(u.Object, "spec", "members")
		Expect(err).NotTo(HaveOccurred())
		Expect(members).To(Equal([]any{
			map[string]any{"name": "new", "weight": int64(0)},
			map[string]any{"name": "b", "weight": int64(5), "zone": "B"},
		}))
		cached, err := loose.Get(key)
		Expect(err).NotTo(HaveOccurred())
		got := kube.Copy(cached)
		u.SetManagedFields(nil)
		got.SetManagedFields(nil)
		Expect(got).To(Equal(u), "the cache has exactly what the server has")

		before := kube.Copy(to)
		to.Spec.Members[1].Weight = 6
		Expect(c.Patch(ctx, to, client.MergeFrom(before))).To(Succeed())
		Expect(whole.Get(ctx, key, u)).To(Succeed())
		members, _, _ = unstructured.NestedSlice(u.Object, "spec", "members")
		Expect(members[1]).To(Equal(map[string]any{"name": "b", "weight": int64(6), "zone": "B"}))
	})

	It("writes the status of a kind that gains the subresource", func(ctx SpecContext) {
		c, _ := inNamespace(ctx, "gains")
		definition := crd("Gaining", nil)
		Expect(c.Create(ctx, definition)).To(Succeed())
		kind := plainKind.GroupVersion().WithKind("Gaining")
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		u.SetNamespace("gains")
		u.SetName("a")
		Eventually(ctx, func() error { return c.Create(ctx, u.DeepCopy()) }).WithTimeout(time.Minute).Should(Succeed())
		Expect(c.Get(ctx, kube.KeyOf(u), u)).To(Succeed())

		Expect(c.Patch(ctx, definition, client.JSONPatch(client.JSONOp{
			Op: "add", Path: "/spec/versions/0/subresources", Value: map[string]any{"status": map[string]any{}},
		}))).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(c.Get(ctx, kube.KeyOf(u), u)).To(Succeed())
			to := u.DeepCopy()
			g.Expect(unstructured.SetNestedField(to.Object, int64(3), "status", "replicas")).To(Succeed())
			_, err := c.PatchChanges(ctx, u, to)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.SubResource("status").Get(ctx, u, to)).To(Succeed(), "the subresource is served")
			replicas, _, _ := unstructured.NestedInt64(to.Object, "status", "replicas")
			g.Expect(replicas).To(Equal(int64(3)))
		}).WithTimeout(time.Minute).Should(Succeed())
	})
})
