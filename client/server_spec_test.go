// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

// only returns the single write that the observer received.
func only(r *recorder) kube.Written {
	GinkgoHelper()
	got := r.take()
	Expect(got).To(HaveLen(1), "each write is told once")
	return got[0]
}

var _ = Describe("reading and writing", func() {
	It("creates, gets, updates, patches and deletes a built-in kind", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "builtin")
		cm := configMap("builtin", "a", map[string]string{"k": "1"})
		Expect(c.Create(ctx, cm)).To(Succeed())
		Expect(cm.UID).NotTo(BeEmpty())
		Expect(cm.Kind).To(Equal("ConfigMap"))
		Expect(cm.ManagedFields[0].Manager).To(Equal("spec"))
		w := only(r)
		Expect(w.Effect).To(Equal(kube.Stored))
		Expect(w.Kind).To(Equal(configMapKind))
		Expect(w.Version).To(Equal(kube.ParseVersion(cm.ResourceVersion)))
		Expect(w.Object).To(Equal(cm))
		Expect(w.Object).NotTo(BeIdenticalTo(cm))

		Expect(apierrors.IsAlreadyExists(c.Create(ctx, configMap("builtin", "a", nil)))).To(BeTrue())
		Expect(r.take()).To(BeEmpty())

		stale := cm.DeepCopy()
		cm.Data = map[string]string{"j": "2"}
		Expect(c.Update(ctx, cm)).To(Succeed())
		Expect(only(r).Version).To(Equal(kube.ParseVersion(cm.ResourceVersion)))

		stale.Data["k"] = "3"
		err := c.Update(ctx, stale)
		var conflict *client.ConflictError
		Expect(errors.As(err, &conflict)).To(BeTrue(), "%v", err)
		Expect(apierrors.IsConflict(err)).To(BeTrue())
		Expect(conflict.Version).To(Equal(kube.ParseVersion(stale.ResourceVersion)))
		Expect(err).To(MatchError(HavePrefix("update ConfigMap builtin/a: ")))
		Expect(stale.Data["k"]).To(Equal("3"), "an error leaves the object as it was")

		Expect(c.Patch(ctx, cm, client.MergePatch(map[string]any{"data": map[string]any{"l": "4"}}))).To(Succeed())
		Expect(cm.Data).To(Equal(map[string]string{"j": "2", "l": "4"}))
		Expect(only(r).Effect).To(Equal(kube.Stored))
		Expect(c.Patch(ctx, cm, client.JSONPatch(client.JSONOp{Op: "remove", Path: "/data/j"}))).To(Succeed())
		Expect(c.Patch(ctx, cm, client.StrategicMergePatch([]byte(`{"metadata":{"labels":{"x":"y"}}}`)))).To(Succeed())
		before := cm.DeepCopy()
		cm.Labels = nil
		cm.Data["m"] = "5"
		Expect(c.Patch(ctx, cm, client.MergeFrom(before))).To(Succeed())
		Expect(cm.Data).To(Equal(map[string]string{"l": "4", "m": "5"}))
		Expect(cm.Labels).To(BeEmpty())
		r.take()

		got := &corev1.ConfigMap{Data: map[string]string{"left": "over"}}
		Expect(c.Get(ctx, kube.KeyOf(cm), got)).To(Succeed())
		Expect(got).To(Equal(cm))

		Expect(c.Delete(ctx, cm)).To(Succeed())
		w = only(r)
		Expect(w.Effect).To(Equal(kube.Removed))
		Expect(w.UID).To(Equal(cm.UID))
		Expect(apierrors.IsNotFound(c.Get(ctx, kube.KeyOf(cm), got))).To(BeTrue())
		Expect(apierrors.IsNotFound(c.Delete(ctx, cm))).To(BeTrue())
		Expect(r.take()).To(BeEmpty())
	})

	It("works on a custom resource, typed, unstructured and by metadata", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "custom")
		site := website("custom", "a")
		Expect(c.Create(ctx, site)).To(Succeed())
		Expect(only(r).Object).To(Equal(site))

		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(websiteKind)
		Expect(c.Get(ctx, kube.KeyOf(site), u)).To(Succeed())
		Expect(unstructured.SetNestedField(u.Object, "changed", "spec", "content")).To(Succeed())
		Expect(c.Update(ctx, u)).To(Succeed())
		Expect(only(r).Version).To(Equal(kube.ParseVersion(u.GetResourceVersion())))

		m := &metav1.PartialObjectMetadata{ObjectMeta: at("custom", "a")}
		m.SetGroupVersionKind(websiteKind)
		Expect(c.Patch(ctx, m, client.MergePatch([]byte(`{"metadata":{"labels":{"by":"metadata"}}}`)))).To(Succeed())
		Expect(m.Labels).To(HaveKeyWithValue("by", "metadata"))
		Expect(m.GroupVersionKind()).To(Equal(websiteKind))
		w := only(r)
		Expect(w.Effect).To(Equal(kube.Stored))
		Expect(w.Version).To(Equal(kube.ParseVersion(m.ResourceVersion)))
		Expect(c.Get(ctx, kube.KeyOf(site), m)).To(Succeed())
		Expect(m.GroupVersionKind()).To(Equal(websiteKind))

		Expect(apierrors.IsUnsupportedMediaType(c.Patch(ctx, site, client.StrategicMergePatch([]byte(`{}`))))).To(BeTrue())
		Expect(c.Delete(ctx, m)).To(Succeed())
		w = only(r)
		Expect(w.Effect).To(Equal(kube.Removed))
		Expect(w.UID).To(Equal(site.UID))
	})

	It("lists live, in pages, by label and field", func(ctx SpecContext) {
		c, _ := inNamespace(ctx, "listing")
		for i := range 5 {
			cm := configMap("listing", fmt.Sprint("a", i), nil)
			cm.Labels = map[string]string{"odd": fmt.Sprint(i%2 == 1)}
			Expect(c.Create(ctx, cm)).To(Succeed())
			site := website("listing", fmt.Sprint("b", i))
			site.Labels = cm.Labels
			Expect(c.Create(ctx, site)).To(Succeed())
		}
		names := func(of func(yield func(string, error) bool)) (names []string) {
			for name, err := range of {
				Expect(err).NotTo(HaveOccurred())
				names = append(names, name)
			}
			return names
		}
		in := client.InNamespace("listing")
		Expect(names(named[*corev1.ConfigMap](ctx, c, in, client.Limit(2)))).To(Equal([]string{"a0", "a1", "a2", "a3", "a4"}))
		Expect(names(named[*Website](ctx, c, in, client.Limit(2)))).To(Equal([]string{"b0", "b1", "b2", "b3", "b4"}))
		Expect(names(named[*Website](ctx, c, client.MatchingLabels{"odd": "true"}))).To(Equal([]string{"b1", "b3"}))
		Expect(names(named[*corev1.ConfigMap](ctx, c, client.MatchingFields{"metadata.name": "a2"}))).To(Equal([]string{"a2"}))
		Expect(names(named[*unstructured.Unstructured](ctx, c, in, client.OfKind(configMapKind), client.Limit(2)))).To(HaveLen(5))
		Expect(names(named[*metav1.PartialObjectMetadata](ctx, c, in, client.OfKind(websiteKind), client.Limit(2)))).To(HaveLen(5))
		for m, err := range client.List[*metav1.PartialObjectMetadata](ctx, c, in, client.OfKind(configMapKind)) {
			Expect(err).NotTo(HaveOccurred())
			Expect(m.GroupVersionKind()).To(Equal(configMapKind))
		}
		for range client.List[*corev1.ConfigMap](ctx, c, in, client.Limit(1)) {
			break
		}
	})

	It("stores nothing and tells nobody in a dry run", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "dry")
		kept := configMap("dry", "kept", nil)
		Expect(c.Create(ctx, kept)).To(Succeed())
		r.take()
		cm := configMap("dry", "a", nil)
		Expect(c.Create(ctx, cm, client.DryRun{})).To(Succeed())
		Expect(cm.UID).NotTo(BeEmpty())
		Expect(c.Apply(ctx, configMap("dry", "b", nil), client.DryRun{})).To(Succeed())
		Expect(c.Delete(ctx, kept, client.DryRun{})).To(Succeed())
		Expect(client.DeleteAllOf[*corev1.ConfigMap](ctx, c, client.InNamespace("dry"), client.DryRun{})).To(Succeed())
		dry, err := client.New(env.Config(), specScheme(), client.Options{Observer: r, DryRun: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(dry.Update(ctx, kept)).To(Succeed())
		Expect(r.take()).To(BeEmpty())
		for got, err := range client.List[*corev1.ConfigMap](ctx, c, client.InNamespace("dry")) {
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Name).To(Equal("kept"))
		}
	})

	It("asks for strict field validation", func(ctx SpecContext) {
		c, _ := inNamespace(ctx, "strict")
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"contant": "typo"}}}
		u.SetGroupVersionKind(websiteKind)
		u.SetNamespace("strict")
		u.SetName("a")
		Expect(c.Create(ctx, u, client.Strict)).To(MatchError(ContainSubstring(`unknown field "spec.contant"`)))
		Expect(c.Create(ctx, u, client.Warn)).To(Succeed())
	})

	It("says what is not served, and finds it once it is", func(ctx SpecContext) {
		c, _ := inNamespace(ctx, "late")
		late := &unstructured.Unstructured{}
		late.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Late"})
		late.SetNamespace("late")
		late.SetName("a")
		err := c.Create(ctx, late)
		var notServed *kube.NotServedError
		Expect(errors.As(err, &notServed)).To(BeTrue(), "%v", err)
		Expect(meta.IsNoMatchError(err)).To(BeTrue())
		Expect(apierrors.IsNotFound(err)).To(BeFalse(), "a missing kind is no missing object")

		definition := crd("Late", nil)
		Expect(env.InstallCRDObjects(ctx, definition)).To(Succeed())
		Expect(c.Create(ctx, late)).To(Succeed())

		Expect(c.Delete(ctx, definition)).To(Succeed())
		Eventually(func() error { return c.Get(ctx, kube.KeyOf(late), late) }).WithTimeout(30 * time.Second).
			Should(MatchError(ContainSubstring("not served")))
	})
})

var _ = Describe("server-side apply", func() {
	It("takes typed objects, apply configurations and unstructured ones", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "apply")
		d := deployment("apply", "a")
		Expect(c.Apply(ctx, d)).To(Succeed())
		Expect(d.Spec.Replicas).To(HaveValue(Equal(int32(1))), "the answer has the server's default")
		Expect(only(r).Object).To(Equal(d))
		Expect(d.ManagedFields[0].FieldsV1.GetRawString()).NotTo(ContainSubstring("f:replicas"))
		Expect(d.ManagedFields[0].FieldsV1.GetRawString()).NotTo(ContainSubstring("f:strategy"))

		version := d.ResourceVersion
		Expect(c.Apply(ctx, deployment("apply", "a"))).To(Succeed())
		Expect(only(r).Version).To(Equal(kube.ParseVersion(version)), "applying the same changes nothing")

		scaled := appsac.Deployment("a", "apply").WithSpec(appsac.DeploymentSpec().WithReplicas(3))
		Expect(c.Apply(ctx, scaled, client.FieldOwner("scaler"))).To(Succeed())
		w := only(r)
		Expect(w.Effect).To(Equal(kube.Stored))
		Expect(w.Kind).To(Equal(deploymentKind))

		scaled.Spec.WithReplicas(4)
		err := c.Apply(ctx, scaled, client.FieldOwner("other"))
		Expect(apierrors.IsConflict(err)).To(BeTrue())
		var conflict *client.ConflictError
		Expect(errors.As(err, &conflict)).To(BeFalse(), "waiting does not resolve a conflict of field owners")
		Expect(r.take()).To(BeEmpty())
		Expect(c.Apply(ctx, scaled, client.FieldOwner("other"), client.Force{})).To(Succeed())

		err = c.Apply(ctx, scaled, client.FieldOwner("other"), client.Force{}, client.Preconditions{ResourceVersion: version})
		Expect(errors.As(err, &conflict)).To(BeTrue(), "%v", err)

		u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"k": ""}}}
		u.SetGroupVersionKind(configMapKind)
		u.SetNamespace("apply")
		u.SetName("u")
		Expect(c.Apply(ctx, u)).To(Succeed())
		Expect(u.GetUID()).NotTo(BeEmpty())
		Expect(c.Apply(ctx, u)).To(Succeed(), "what was read can be applied")

		Expect(c.Apply(ctx, coreac.ConfigMap("x", "apply"), client.FieldOwner(""))).To(MatchError(ContainSubstring("client.FieldOwner")))
	})

	It("removes from a Secret what is no longer in stringData", func(ctx SpecContext) {
		c, _ := inNamespace(ctx, "stringdata")
		untyped := func(data map[string]any) kube.Object {
			u := &unstructured.Unstructured{Object: map[string]any{"stringData": data}}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			return u
		}
		for name, secrets := range map[string][]kube.Object{
			"typed":   {&corev1.Secret{StringData: map[string]string{"a": "1", "b": "2"}}, &corev1.Secret{StringData: map[string]string{"a": "3"}}},
			"untyped": {untyped(map[string]any{"a": "1", "b": "2"}), untyped(map[string]any{"a": "3"})},
		} {
			for _, s := range secrets {
				s.SetNamespace("stringdata")
				s.SetName(name)
				Expect(c.Apply(ctx, s)).To(Succeed())
			}
			is := &corev1.Secret{}
			Expect(c.Get(ctx, kube.Key{Namespace: "stringdata", Name: name}, is)).To(Succeed())
			Expect(is.Data).To(Equal(map[string][]byte{"a": []byte("3")}), name)
		}
	})

	It("hands over what was written by Update, once", func(ctx SpecContext) {
		c, _ := inNamespace(ctx, "handover")
		old := configMap("handover", "a", map[string]string{"kept": "1", "dropped": "2"})
		Expect(c.Create(ctx, old, client.FieldOwner("manager"))).To(Succeed())
		data := func(name string) map[string]string {
			is := &corev1.ConfigMap{}
			Expect(c.Get(ctx, kube.Key{Namespace: "handover", Name: name}, is)).To(Succeed())
			return is.Data
		}
		apply := func(c *client.Client, name string, opts ...client.Option) {
			wanted := configMap("handover", name, map[string]string{"kept": "3"})
			Expect(c.Apply(ctx, wanted, append(opts, client.FieldOwner("website"), client.Force{})...)).To(Succeed())
		}
		apply(c, "a")
		Expect(data("a")).To(Equal(map[string]string{"kept": "3", "dropped": "2"}), "the old owner still has it")
		apply(c, "a", client.HandOver{"manager"}, client.DryRun{})
		Expect(data("a")).To(HaveKey("dropped"))
		apply(c, "a", client.HandOver{"manager"})
		Expect(data("a")).To(Equal(map[string]string{"kept": "3"}))

		By("leaving later writes of that owner alone, and creating what is not there")
		old = configMap("handover", "a", nil)
		Expect(c.Patch(ctx, old, client.MergePatch(map[string]any{"data": map[string]any{"later": "4"}}), client.FieldOwner("manager"))).To(Succeed())
		apply(c, "a", client.HandOver{"manager"})
		Expect(data("a")).To(HaveKeyWithValue("later", "4"))
		view := c.With(client.HandOver{"manager", "another"})
		apply(view, "new")
		Expect(data("new")).To(Equal(map[string]string{"kept": "3"}))

		By("handing over the status")
		site := website("handover", "site")
		Expect(c.Create(ctx, site)).To(Succeed())
		site.Status.Replicas = 3
		Expect(c.Status().Update(ctx, site, client.FieldOwner("manager"))).To(Succeed())
		wanted := website("handover", "site")
		wanted.Status.Replicas = 1
		Expect(c.Status().Apply(ctx, wanted, client.HandOver{"manager"}, client.FieldOwner("website"), client.Force{})).To(Succeed())
		for _, f := range wanted.ManagedFields {
			Expect(f.Manager == "manager" && f.Subresource == "status").To(BeFalse(), "%v", f)
		}

		Expect(c.Apply(ctx, configMap("handover", "a", nil), client.HandOver{""})).To(MatchError(ContainSubstring("field owner")))
	})

	It("claims a zero that is a pointer, and an empty value in a map", func(ctx SpecContext) {
		c, _ := inNamespace(ctx, "zeros")
		site := website("zeros", "a")
		site.Spec.Replicas = new(int32)
		Expect(c.Apply(ctx, site)).To(Succeed())
		Expect(site.Spec.Replicas).To(HaveValue(BeZero()))
		Expect(site.Spec.Host).To(Equal("localhost"), "the empty host was not sent, so the server's default holds")
		fields := site.ManagedFields[0].FieldsV1.GetRawString()
		Expect(fields).To(ContainSubstring("f:replicas"))
		Expect(fields).NotTo(ContainSubstring("f:host"))
		Expect(fields).To(ContainSubstring("f:content"), "without omitempty the empty text is meant")
		cm := configMap("zeros", "a", map[string]string{"empty": ""})
		Expect(c.Apply(ctx, cm)).To(Succeed())
		Expect(cm.Data).To(HaveKeyWithValue("empty", ""))
	})
})

var _ = Describe("subresources", func() {
	It("writes status by update, patch and apply", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "status")
		site := website("status", "a")
		Expect(c.Create(ctx, site)).To(Succeed())
		r.take()
		site.Status.Replicas = 1
		site.Spec.Content = "ignored"
		Expect(c.Status().Update(ctx, site)).To(Succeed())
		Expect(site.Status.Replicas).To(Equal(int32(1)))
		Expect(site.Spec.Content).To(Equal("hello"))
		Expect(only(r).Object).To(Equal(site))
		before := kube.Copy(site)
		site.Status.Replicas = 2
		Expect(c.Status().Patch(ctx, site, client.MergeFrom(before))).To(Succeed())
		Expect(only(r).Effect).To(Equal(kube.Stored))
		site.Status.Replicas = 3
		Expect(c.Status().Apply(ctx, site, client.Force{})).To(Succeed())
		Expect(site.Status.Replicas).To(Equal(int32(3)))
		Expect(only(r).Effect).To(Equal(kube.Stored))

		before.Status.Replicas = 9
		var conflict *client.ConflictError
		err := c.Status().Update(ctx, before)
		Expect(errors.As(err, &conflict)).To(BeTrue())
		Expect(err).To(MatchError(HavePrefix("update status of Website status/a: ")))
	})

	It("says which subresource is missing", func(ctx SpecContext) {
		c, _ := inNamespace(ctx, "nosub")
		plain := &unstructured.Unstructured{}
		plain.SetGroupVersionKind(plainKind)
		plain.SetNamespace("nosub")
		plain.SetName("a")
		Expect(c.Create(ctx, plain)).To(Succeed())
		err := c.Status().Update(ctx, plain)
		Expect(err).To(MatchError(ContainSubstring(`serves no subresource "status" of Plain`)))
		Expect(apierrors.IsNotFound(err)).To(BeFalse())
		Expect(c.Get(ctx, kube.KeyOf(plain), plain)).To(Succeed())
		err = c.Status().Update(ctx, asRead(website("nosub", "nobody")))
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})

	It("scales", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "scales")
		d := deployment("scales", "a")
		site := website("scales", "a")
		site.Spec.Replicas = new(int32(1))
		Expect(c.Create(ctx, d)).To(Succeed())
		Expect(c.Create(ctx, site)).To(Succeed())
		r.take()
		for _, obj := range []kube.Object{d, site} {
			var scale autoscalingv1.Scale
			Expect(c.SubResource("scale").Get(ctx, obj, &scale)).To(Succeed())
			Expect(scale.Spec.Replicas).To(Equal(int32(1)))
			stale := scale.DeepCopy()
			scale.Spec.Replicas = 2
			Expect(c.SubResource("scale").Update(ctx, obj, client.Body{Object: &scale})).To(Succeed())
			w := only(r)
			Expect(w.Effect).To(Equal(kube.Touched))
			Expect(w.UID).To(Equal(obj.GetUID()))
			Expect(w.Version).To(Equal(kube.ParseVersion(scale.ResourceVersion)))
			Expect(w.Version).To(BeNumerically(">", kube.ParseVersion(stale.ResourceVersion)))
			var conflict *client.ConflictError
			Expect(errors.As(c.SubResource("scale").Update(ctx, obj, client.Body{Object: stale}), &conflict)).To(BeTrue())
			Expect(c.SubResource("scale").Patch(ctx, obj, client.MergePatch([]byte(`{"spec":{"replicas":3}}`)))).To(Succeed())
			Expect(only(r).Effect).To(Equal(kube.Touched))
			Expect(c.Get(ctx, kube.KeyOf(obj), obj)).To(Succeed())
		}
		Expect(d.Spec.Replicas).To(HaveValue(Equal(int32(3))))
		Expect(site.Spec.Replicas).To(HaveValue(Equal(int32(3))))
	})

	It("evicts", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "evicts")
		p := pod("evicts", "a")
		p.Spec.NodeName = "nowhere"
		Expect(c.Create(ctx, p)).To(Succeed())
		r.take()
		eviction := &policyv1.Eviction{ObjectMeta: at("evicts", "a")}
		Expect(c.SubResource("eviction").Create(ctx, p, eviction)).To(Succeed())
		w := only(r)
		Expect(w.Effect).To(Equal(kube.Touched))
		Expect(w.Kind).To(Equal(podKind))
		Expect(w.Key).To(Equal(kube.KeyOf(p)))
	})
})

var _ = Describe("deleting", func() {
	It("leaves what has finalizers until the last one is removed", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "finalizers")
		site := website("finalizers", "a")
		site.Finalizers = []string{"example.com/a"}
		Expect(c.Create(ctx, site)).To(Succeed())
		r.take()
		Expect(c.SetFinalizers(ctx, site, []string{"example.com/a", "example.com/b"})).To(Succeed())
		Expect(site.Finalizers).To(HaveLen(1), "the object passed is read only")
		w := only(r)
		Expect(w.Effect).To(Equal(kube.Stored))
		Expect(w.Object.GetFinalizers()).To(HaveLen(2))

		var conflict *client.ConflictError
		Expect(errors.As(c.SetFinalizers(ctx, site, nil), &conflict)).To(BeTrue(), "the version has been passed")

		Expect(c.Delete(ctx, site)).To(Succeed())
		w = only(r)
		Expect(w.Effect).To(Equal(kube.Stored))
		Expect(w.Object.GetDeletionTimestamp()).NotTo(BeNil())
		Expect(c.Get(ctx, kube.KeyOf(site), site)).To(Succeed())
		Expect(c.SetFinalizers(ctx, site, nil)).To(Succeed())
		w = only(r)
		Expect(w.Effect).To(Equal(kube.Removed))
		Expect(w.UID).To(Equal(site.UID))
		Expect(apierrors.IsNotFound(c.Get(ctx, kube.KeyOf(site), site))).To(BeTrue())

		again := website("finalizers", "a")
		Expect(c.Create(ctx, again)).To(Succeed())
		err := c.SetFinalizers(ctx, site, []string{"example.com/a"})
		Expect(err).To(HaveOccurred(), "the name is another object's")
		GinkgoWriter.Println("finalizers of another UID:", err)
	})

	It("tells a pod in its grace period from one that is gone", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "grace")
		running := pod("grace", "running")
		running.Spec.NodeName = "nowhere"
		Expect(c.Create(ctx, running)).To(Succeed())
		waiting := pod("grace", "unscheduled")
		Expect(c.Create(ctx, waiting)).To(Succeed())
		r.take()

		Expect(c.Delete(ctx, waiting)).To(Succeed())
		Expect(only(r).Effect).To(Equal(kube.Removed))
		Expect(apierrors.IsNotFound(c.Get(ctx, kube.KeyOf(waiting), waiting))).To(BeTrue())

		Expect(c.Delete(ctx, running)).To(Succeed())
		w := only(r)
		Expect(w.Effect).To(Equal(kube.Stored))
		Expect(w.Object.GetDeletionGracePeriodSeconds()).To(HaveValue(Equal(int64(30))))
		Expect(c.Patch(ctx, running, client.MergePatch([]byte(`{"metadata":{"labels":{"still":"here"}}}`)))).To(Succeed())
		Expect(only(r).Effect).To(Equal(kube.Stored))

		Expect(c.Delete(ctx, running, client.GracePeriod(0))).To(Succeed())
		Expect(only(r).Effect).To(Equal(kube.Removed))
		Expect(apierrors.IsNotFound(c.Get(ctx, kube.KeyOf(running), running))).To(BeTrue())
	})

	It("keeps a namespace until its own finalizers are gone", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "namespaced")
		ns := namespace("namespaced")
		Expect(c.Delete(ctx, ns)).To(Succeed())
		w := only(r)
		Expect(w.Effect).To(Equal(kube.Stored))
		Expect(w.Kind).To(Equal(namespaceKind))
		Expect(c.Get(ctx, kube.KeyOf(ns), ns)).To(Succeed())
		Expect(c.Patch(ctx, ns, client.MergePatch([]byte(`{"metadata":{"labels":{"still":"here"}}}`)))).To(Succeed())
		Expect(only(r).Effect).To(Equal(kube.Stored))
		ns.Spec.Finalizers = nil
		Expect(c.SubResource("finalize").Update(ctx, ns)).To(Succeed())
		Expect(only(r).Effect).To(Equal(kube.Removed))
		Expect(apierrors.IsNotFound(c.Get(ctx, kube.KeyOf(ns), ns))).To(BeTrue())
	})

	It("honours preconditions and propagation", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "conditions")
		cm := configMap("conditions", "a", nil)
		Expect(c.Create(ctx, cm)).To(Succeed())
		r.take()
		var conflict *client.ConflictError
		err := c.Delete(ctx, cm, client.Preconditions{UID: "another"})
		Expect(apierrors.IsConflict(err)).To(BeTrue())
		Expect(errors.As(err, &conflict)).To(BeFalse(), "another UID is no matter of waiting")
		err = c.Delete(ctx, cm, client.Preconditions{UID: cm.UID, ResourceVersion: "1"})
		Expect(errors.As(err, &conflict)).To(BeTrue(), "%v", err)
		for _, patch := range []client.Patch{
			client.MergePatch([]byte(`{"data":{"a":"b"}}`)),
			client.StrategicMergePatch([]byte(`{"data":{"a":"b"}}`)),
			client.JSONPatch(client.JSONOp{Op: "add", Path: "/data", Value: map[string]any{}}),
		} {
			conflict = nil
			err = c.Patch(ctx, cm, patch, client.Preconditions{ResourceVersion: "1"})
			Expect(errors.As(err, &conflict)).To(BeTrue(), "%v", err)
			err = c.Patch(ctx, cm, patch, client.Preconditions{UID: "another"})
			Expect(err).To(HaveOccurred())
			Expect(c.Patch(ctx, cm, patch, client.Preconditions{UID: cm.UID, ResourceVersion: cm.ResourceVersion})).To(Succeed())
		}
		r.take()
		Expect(c.Delete(ctx, cm, client.Propagation(metav1.DeletePropagationForeground))).To(Succeed())
		w := only(r)
		Expect(w.Effect).To(Equal(kube.Stored), "the foreground finalizer holds it")
	})

	It("deletes a collection", func(ctx SpecContext) {
		c, r := inNamespace(ctx, "collection")
		held := configMap("collection", "held", nil)
		held.Finalizers = []string{"example.com/a"}
		Expect(c.Create(ctx, held)).To(Succeed())
		free := configMap("collection", "free", nil)
		Expect(c.Create(ctx, free)).To(Succeed())
		other := configMap("collection", "other", nil)
		other.Labels = map[string]string{"keep": "me"}
		Expect(c.Create(ctx, other)).To(Succeed())
		running := pod("collection", "running")
		running.Spec.NodeName = "nowhere"
		Expect(c.Create(ctx, running)).To(Succeed())
		site := website("collection", "site")
		Expect(c.Create(ctx, site)).To(Succeed())
		job := &batchv1.Job{ObjectMeta: at("collection", "job"), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod("", "").Spec}}}
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		Expect(c.Create(ctx, job)).To(Succeed())
		r.take()

		effects := func() map[string]kube.WriteEffect {
			all := map[string]kube.WriteEffect{}
			for _, w := range r.take() {
				Expect(w.UID).NotTo(BeEmpty())
				all[w.Key.Name] = w.Effect
			}
			return all
		}
		in := client.InNamespace("collection")
		Expect(client.DeleteAllOf[*corev1.ConfigMap](ctx, c, in, client.MatchingFields{"metadata.name": "free"})).To(Succeed())
		Expect(effects()).To(Equal(map[string]kube.WriteEffect{"free": kube.Removed}))
		Expect(client.DeleteAllOf[*corev1.ConfigMap](ctx, c, in, client.MatchingLabels{"keep": "you"})).To(Succeed())
		Expect(effects()).To(BeEmpty())
		Expect(client.DeleteAllOf[*corev1.ConfigMap](ctx, c, in)).To(Succeed())
		Expect(effects()).To(Equal(map[string]kube.WriteEffect{"held": kube.Touched, "other": kube.Removed}))
		Expect(client.DeleteAllOf[*corev1.Pod](ctx, c, in)).To(Succeed())
		Expect(effects()).To(Equal(map[string]kube.WriteEffect{"running": kube.Touched}))
		Expect(client.DeleteAllOf[*Website](ctx, c, in)).To(Succeed())
		Expect(effects()).To(Equal(map[string]kube.WriteEffect{"site": kube.Removed}))
		Expect(client.DeleteAllOf[*batchv1.Job](ctx, c, in)).To(Succeed())
		Expect(effects()).To(Equal(map[string]kube.WriteEffect{"job": kube.Touched}))
		Expect(apierrors.IsNotFound(c.Get(ctx, kube.KeyOf(other), other))).To(BeTrue())
		Expect(c.Get(ctx, kube.KeyOf(held), held)).To(Succeed())
		Expect(c.Get(ctx, kube.KeyOf(running), running)).To(Succeed())
	})
})
