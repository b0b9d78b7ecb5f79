// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

var _ = Describe("writing with care", func() {
	It("refuses fields that the server does not know", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "unknown")
		site := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"content": "hello", "colour": "red"}}}
		site.SetGroupVersionKind(websiteKind)
		site.SetNamespace("unknown")
		site.SetName("a")
		Expect(c.Create(ctx, site)).To(MatchError(ContainSubstring(`unknown field "spec.colour"`)))
		Expect(r.take()).To(BeEmpty())
		Expect(c.Apply(ctx, site)).To(MatchError(ContainSubstring(`colour`)))
		Expect(only(r).Effect).To(Equal(kube.Touched), "the server answers with code 500, which leaves open whether it has written")
		Expect(c.Create(ctx, site, client.Warn)).To(Succeed())
		_, kept, _ := unstructured.NestedString(site.Object, "spec", "colour")
		Expect(kept).To(BeFalse())
		err := c.Patch(ctx, site, client.MergePatch([]byte(`{"spec":{"colour":"red"}}`)))
		Expect(err).To(MatchError(ContainSubstring(`unknown field "spec.colour"`)))
		pods := c.Patch(ctx, pod("unknown", "none"), client.MergePatch([]byte(`{}`)))
		Expect(apierrors.IsNotFound(pods)).To(BeTrue())
	})

	It("is limited to a namespace", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "limited")
		view := c.With(client.InNamespace("limited"), client.FieldOwner("limited"))
		cm := configMap("", "a", map[string]string{"k": "1"})
		Expect(view.Create(ctx, cm)).To(Succeed())
		Expect(cm.Namespace).To(Equal("limited"))
		Expect(only(r).Key).To(Equal(kube.KeyOf(cm)))
		site := website("", "a")
		Expect(view.Apply(ctx, site)).To(Succeed())
		Expect(site.Namespace).To(Equal("limited"))
		again := website("", "a")
		again.Status.Replicas = 3
		Expect(view.Status().Apply(ctx, again)).To(Succeed())
		Expect(again.Status.Replicas).To(Equal(int32(3)))
		p := pod("", "a")
		p.Spec.NodeName = "nowhere"
		Expect(view.Create(ctx, p)).To(Succeed())
		Expect(view.Evict(ctx, pod("", "a"), client.DryRun{})).To(Succeed())
		Expect(view.Get(ctx, kube.Key{Name: "a"}, p)).To(Succeed())
		Expect(p.DeletionTimestamp).To(BeNil(), "a rehearsal deletes nothing")
		Expect(client.DeleteAllOf[*corev1.ConfigMap](ctx, view)).To(Succeed())
		Expect(apierrors.IsNotFound(c.Get(ctx, kube.KeyOf(cm), cm))).To(BeTrue())
		Expect(view.Delete(ctx, namespace("limited"))).NotTo(Succeed())
	})

	It("patches what has changed, object and status apart", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "changes")
		site := website("changes", "a")
		site.Finalizers = []string{"example.com/a"}
		Expect(c.Create(ctx, site)).To(Succeed())
		r.take()
		from := kube.Copy(site)

		changed, err := c.PatchChanges(ctx, from, kube.Copy(from))
		Expect(err).NotTo(HaveOccurred())
		Expect(changed).To(BeFalse())

		to := kube.Copy(from)
		to.Spec.Content, to.Status.Replicas, to.Finalizers = "bye", 2, []string{"example.com/b"}
		changed, err = c.PatchChanges(ctx, from, to)
		Expect(err).NotTo(HaveOccurred())
		Expect(changed).To(BeTrue())
		Expect(r.take()).To(HaveLen(2))
		Expect(c.Get(ctx, kube.KeyOf(site), site)).To(Succeed())
		Expect(to).To(Equal(site))
		Expect(site.Status.Replicas).To(Equal(int32(2)))
		Expect(site.Spec.Content).To(Equal("bye"))
		Expect(site.Finalizers).To(ConsistOf("example.com/b"))

		late := kube.Copy(from)
		late.Finalizers = nil
		var conflict *client.ConflictError
		_, err = c.PatchChanges(ctx, from, late)
		Expect(errors.As(err, &conflict)).To(BeTrue(), "%v", err)
		field := kube.Copy(from)
		field.Spec.Host = "elsewhere"
		changed, err = c.PatchChanges(ctx, from, field)
		Expect(err).NotTo(HaveOccurred())
		Expect(changed).To(BeTrue())
		Expect(field.Spec.Content).To(Equal("bye"), "what others have changed stays")

		Expect(c.SetFinalizers(ctx, field, nil)).To(Succeed())
		Expect(c.Delete(ctx, field)).To(Succeed())
		reborn := website("changes", "a")
		Expect(c.Create(ctx, reborn)).To(Succeed())
		field.Spec.Content = "of the old one"
		_, err = c.PatchChanges(ctx, from, field)
		Expect(err).To(HaveOccurred(), "the name is another object's")
		Expect(c.Get(ctx, kube.KeyOf(reborn), reborn)).To(Succeed())
		Expect(reborn.Spec.Content).To(Equal("hello"))
	})

	It("creates or updates", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "either")
		for _, want := range []client.Outcome{client.Created, client.Unchanged, client.Updated} {
			cm := configMap("either", "a", nil)
			Expect(c.CreateOrUpdate(ctx, cm, func() error {
				cm.Data = map[string]string{"k": "1"}
				if want == client.Updated {
					cm.Data["k"] = "2"
				}
				return nil
			})).To(Equal(want))
			Expect(cm.UID).NotTo(BeEmpty())
		}
		Expect(r.take()).To(HaveLen(2))
	})

	It("evicts what a budget allows, and says when it does not", func(ctx SpecContext) {
		c, _ := inNamespace(ctx, "budget")
		p := pod("budget", "a")
		p.Labels = map[string]string{"app": "a"}
		p.Spec.NodeName = "nowhere"
		Expect(c.Create(ctx, p)).To(Succeed())
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		Expect(c.Status().Update(ctx, p)).To(Succeed())
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: at("budget", "a"), Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(0)),
			Selector:       &metav1.LabelSelector{MatchLabels: p.Labels},
		}}
		Expect(c.Create(ctx, budget)).To(Succeed())
		budget.Status.ObservedGeneration = budget.Generation
		budget.Status.DisruptionsAllowed, budget.Status.CurrentHealthy, budget.Status.DesiredHealthy, budget.Status.ExpectedPods = 0, 1, 1, 1
		Expect(c.Status().Update(ctx, budget)).To(Succeed())

		err := c.Evict(ctx, p)
		Expect(apierrors.IsTooManyRequests(err)).To(BeTrue(), "%v", err)
		Expect(apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)).To(BeTrue(), "%v", err)
		Expect(c.Delete(ctx, budget)).To(Succeed())
		Expect(c.Evict(ctx, p, client.Preconditions{UID: "another"})).NotTo(Succeed())
		Expect(c.Evict(ctx, p, client.Preconditions{UID: p.UID})).To(Succeed())
		Expect(c.Get(ctx, kube.KeyOf(p), p)).To(Succeed())
		Expect(p.DeletionTimestamp).NotTo(BeNil())
	})

	It("scales by number", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "number")
		d := deployment("number", "a")
		Expect(c.Create(ctx, d)).To(Succeed())
		r.take()
		Expect(c.SetScale(ctx, d, 4)).To(Succeed())
		w := only(r)
		Expect(w.Effect).To(Equal(kube.Touched))
		Expect(w.UID).To(Equal(d.UID))
		scale, err := c.Scale(ctx, d)
		Expect(err).NotTo(HaveOccurred())
		Expect(scale.Spec.Replicas).To(Equal(int32(4)))
		var conflict *client.ConflictError
		err = c.SetScale(ctx, d, 5, client.Preconditions{ResourceVersion: d.ResourceVersion})
		Expect(errors.As(err, &conflict)).To(BeTrue(), "%v", err)
	})

	It("watches without a cache", func(ctx SpecContext) {
		c, _ := inNamespace(ctx, "watching")
		before := website("watching", "before")
		Expect(c.Create(ctx, before)).To(Succeed())
		seen := []watch.EventType{}
		for event, err := range client.Watch[*Website](ctx, c, client.InNamespace("watching")) {
			Expect(err).NotTo(HaveOccurred())
			seen = append(seen, event.Type)
			switch event.Type {
			case watch.Added:
				event.Object.Spec.Content = "changed"
				Expect(c.Update(ctx, event.Object)).To(Succeed())
			case watch.Modified:
				Expect(c.Delete(ctx, event.Object)).To(Succeed())
			}
			if event.Type == watch.Deleted {
				break
			}
		}
		Expect(seen).To(Equal([]watch.EventType{watch.Added, watch.Modified, watch.Deleted}))

		for event, err := range client.Watch[*metav1.PartialObjectMetadata](ctx, c, client.OfKind(websiteKind), client.Since(before.ResourceVersion)) {
			Expect(err).NotTo(HaveOccurred())
			Expect(event.Type).To(Equal(watch.Modified), "what was there before is not told again")
			Expect(event.Object.Name).To(Equal("before"))
			break
		}
		for _, err := range client.Watch[*corev1.ConfigMap](ctx, c, client.Since("1")) {
			Expect(apierrors.IsResourceExpired(err) || err == nil).To(BeTrue(), "%v", err)
			break
		}
	})
})
