// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

var _ = Describe("a set of children", func() {
	It("is applied and pruned", func(ctx SpecContext) {
		inNamespace(ctx, "children")
		informers, err := informer.NewSharedInformerFactory(env.Config(), specScheme(), informer.Options{
			DetectMutations: informertest.NoMutations(func(m ...any) { Fail(fmt.Sprint(m...)) }),
		})
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(env.Config(), specScheme(), client.Options{Observer: informers, FieldOwner: "spec"})
		Expect(err).NotTo(HaveOccurred())
		pages := informer.For[*corev1.ConfigMap](informers, informer.Scope{Namespaces: []string{"children"}})

		running, stop := context.WithCancel(ctx)
		var run sync.WaitGroup
		run.Go(func() {
			defer GinkgoRecover()
			Expect(informers.Run(running)).To(Succeed())
		})
		defer run.Wait()
		defer stop()
		Expect(informers.WaitForSync(ctx)).Error().NotTo(HaveOccurred())

		site := website("children", "site")
		Expect(c.Create(ctx, site)).To(Succeed())
		Expect(c.Create(ctx, configMap("children", "by-hand", nil))).To(Succeed())

		set := reconcile.NewChildSet(c, c.Scheme(), []reconcile.ChildKind{reconcile.Children(pages)}, reconcile.ChildSetOptions{Labels: map[string]string{"set": "pages"}})
		page := func(name, text string) kube.Object {
			return configMap("children", name, map[string]string{"page": text})
		}
		for _, step := range []struct {
			wanted []kube.Object
			report string
		}{
			{[]kube.Object{page("a", "1"), page("b", "1")}, "created ConfigMap children/a, ConfigMap children/b; 0 unchanged"},
			{[]kube.Object{page("a", "1"), page("b", "2")}, "updated ConfigMap children/b; 1 unchanged"},
			{[]kube.Object{page("a", "1")}, "pruned ConfigMap children/b; 1 unchanged"},
			{[]kube.Object{page("a", "1")}, "1 unchanged"},
		} {
			report, err := set.Apply(ctx, site, step.wanted...)
			Expect(err).NotTo(HaveOccurred())
			Expect(report.String()).To(Equal(step.report), "the cache shows own writes at once")
		}
		a := &corev1.ConfigMap{}
		Expect(c.Get(ctx, kube.Key{Namespace: "children", Name: "a"}, a)).To(Succeed())
		Expect(metav1.IsControlledBy(a, site)).To(BeTrue())
		Expect(a.Labels).To(HaveKeyWithValue("set", "pages"))

		_, err = set.Apply(ctx, site, page("a", "1"), page("by-hand", "1"))
		Expect(err).To(MatchError(ContainSubstring("has no controller")))
		other := website("children", "other")
		Expect(c.Create(ctx, other)).To(Succeed())
		_, err = set.Apply(ctx, other, page("a", "1"))
		taken, is := errors.AsType[*reconcile.AlreadyControlledError](err)
		Expect(is).To(BeTrue(), "%v", err)
		Expect(taken.Controller.UID).To(Equal(site.UID))
		By("reading what an informer that selects does not show")
		selecting := informer.For[*corev1.ConfigMap](informers, informer.Scope{Namespaces: []string{"children"}, LabelSelector: "set=pages"})
		Expect(informers.WaitForSync(ctx)).Error().NotTo(HaveOccurred())
		narrow := reconcile.NewChildSet(c, c.Scheme(), []reconcile.ChildKind{reconcile.Children(selecting)}, reconcile.ChildSetOptions{Labels: map[string]string{"set": "pages"}})
		_, err = narrow.Apply(ctx, site, page("a", "1"), page("by-hand", "1"))
		Expect(err).To(MatchError(ContainSubstring("has no controller")))
		foreign := configMap("children", "foreign", nil)
		Expect(reconcile.SetControllerReference(other, foreign, c.Scheme())).To(Succeed())
		Expect(c.Create(ctx, foreign)).To(Succeed())
		_, err = narrow.Apply(ctx, site, page("a", "1"), page("foreign", "1"))
		_, is = errors.AsType[*reconcile.AlreadyControlledError](err)
		Expect(is).To(BeTrue(), "%v", err)
		By("creating a child once")
		fills := 0
		kept := func(of *reconcile.ChildSet, text string) (*corev1.ConfigMap, error) {
			child := configMap("children", "kept", nil)
			_, err := of.Apply(ctx, site, page("a", "1"), reconcile.Once(child, func(c *corev1.ConfigMap) {
				fills++
				c.Data = map[string]string{"page": text}
			}))
			return child, err
		}
		for _, of := range []*reconcile.ChildSet{set, set, narrow} {
			child, err := kept(of, fmt.Sprint("made in call ", fills+1))
			Expect(err).NotTo(HaveOccurred())
			Expect(child.Data).To(HaveKeyWithValue("page", "made in call 1"))
			Expect(metav1.IsControlledBy(child, site)).To(BeTrue())
			Expect(child.Labels).To(HaveKeyWithValue("set", "pages"))
		}
		Expect(fills).To(Equal(1), "the content is made once")
		_, err = set.Apply(ctx, site, page("a", "1"), reconcile.Once(configMap("children", "by-hand", nil), nil))
		Expect(err).To(MatchError(ContainSubstring("has no controller")))
		adopting := reconcile.NewChildSet(c, c.Scheme(), []reconcile.ChildKind{reconcile.Children(pages)}, reconcile.ChildSetOptions{
			Labels: map[string]string{"set": "pages"}, Adopt: true,
		})
		Expect(c.Create(ctx, configMap("children", "adopted", map[string]string{"page": "a person's"}))).To(Succeed())
		adopted := configMap("children", "adopted", nil)
		_, err = adopting.Apply(ctx, site, page("a", "1"), reconcile.Once(adopted, nil))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Get(ctx, kube.KeyOf(adopted), adopted)).To(Succeed())
		Expect(adopted.Data).To(HaveKeyWithValue("page", "a person's"))
		Expect(metav1.IsControlledBy(adopted, site)).To(BeTrue())
		Expect(c.Delete(ctx, adopted)).To(Succeed())

		By("leaving what is made beside the set")
		beside := configMap("children", "beside", map[string]string{"password": "1"})
		Expect(reconcile.SetControllerReference(site, beside, c.Scheme())).To(Succeed())
		beside.Labels = map[string]string{"set": "pages"}
		Expect(c.CreateOrUpdate(ctx, beside, func() error { return nil })).To(Equal(client.Created))
		report, err := set.Apply(ctx, site, page("a", "1"))
		Expect(err).NotTo(HaveOccurred())
		Expect(report.String()).To(Equal("1 unchanged"))
		Expect(c.Get(ctx, kube.KeyOf(beside), beside)).To(Succeed())

		By("recreating an immutable child")
		frozen := func(text string) kube.Object {
			cm := configMap("children", "frozen", map[string]string{"page": text})
			cm.Immutable = new(true)
			return cm
		}
		_, err = set.Apply(ctx, site, page("a", "1"), frozen("1"))
		Expect(err).NotTo(HaveOccurred())
		_, err = set.Apply(ctx, site, page("a", "1"), frozen("2"))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		recreating := reconcile.NewChildSet(c, c.Scheme(), []reconcile.ChildKind{reconcile.Recreate(reconcile.Children(pages), metav1.DeletePropagationBackground)},
			reconcile.ChildSetOptions{Labels: map[string]string{"set": "pages"}})
		invalid := frozen("3").(*corev1.ConfigMap)
		invalid.BinaryData = map[string][]byte{"page": nil}
		_, err = recreating.Apply(ctx, site, page("a", "1"), invalid)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(c.Get(ctx, kube.KeyOf(invalid), invalid)).To(Succeed(), "what is invalid in itself is no reason to delete")
		report, err = recreating.Apply(ctx, site, page("a", "1"), frozen("2"))
		Expect(err).NotTo(HaveOccurred())
		Expect(report.String()).To(Equal("recreated ConfigMap children/frozen; 1 unchanged"))
		cm := frozen("").(*corev1.ConfigMap)
		Expect(c.Get(ctx, kube.KeyOf(cm), cm)).To(Succeed())
		Expect(cm.Data).To(HaveKeyWithValue("page", "2"))
		Expect(c.SetFinalizers(ctx, cm, []string{"example.com/held"})).To(Succeed())
		for range 2 {
			_, err = recreating.Apply(ctx, site, page("a", "1"), frozen("4"))
			Expect(err).To(MatchError(reconcile.ErrChildTerminating))
		}
		Expect(c.Get(ctx, kube.KeyOf(cm), cm)).To(Succeed())
		Expect(c.SetFinalizers(ctx, cm, nil)).To(Succeed())
		report, err = recreating.Apply(ctx, site, page("a", "1"), frozen("4"))
		Expect(err).NotTo(HaveOccurred())
		Expect(report.String()).To(Equal("created ConfigMap children/frozen; 1 unchanged"))
		_, err = set.Apply(ctx, site, page("a", "1"))
		Expect(err).NotTo(HaveOccurred())

		_, err = set.Apply(ctx, site)
		Expect(err).To(MatchError(reconcile.ErrNothingWanted))
		report, err = set.PruneAll(ctx, site)
		Expect(err).NotTo(HaveOccurred())
		Expect(report.String()).To(Equal("pruned ConfigMap children/a; 0 unchanged"))
		Expect(apierrors.IsNotFound(c.Get(ctx, kube.KeyOf(a), a))).To(BeTrue())
		Expect(c.Get(ctx, kube.Key{Namespace: "children", Name: "by-hand"}, a)).To(Succeed())
	})
})
