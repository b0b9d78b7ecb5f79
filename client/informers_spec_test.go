// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

var _ client.Observer = (*informer.SharedInformerFactory)(nil)

var _ = Describe("with informers that observe", func() {
	It("shows each write to the next read of a Lister (R4)", func(ctx SpecContext) {
		inNamespace(ctx, "shown")
		informers, err := informer.NewSharedInformerFactory(env.Config(), specScheme(), informer.Options{
			DetectMutations: informertest.NoMutations(func(m ...any) { Fail(fmt.Sprint(m...)) }),
		})
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(env.Config(), specScheme(), client.Options{Observer: informers, FieldOwner: "spec"})
		Expect(err).NotTo(HaveOccurred())
		sites := informer.For[*Website](informers).Lister()
		maps := informer.For[*corev1.ConfigMap](informers).Lister()

		running, stop := context.WithCancel(ctx)
		var run sync.WaitGroup
		run.Go(func() {
			defer GinkgoRecover()
			Expect(informers.Run(running)).To(Succeed())
		})
		defer run.Wait()
		defer stop()
		Expect(informers.WaitForSync(ctx)).Error().NotTo(HaveOccurred())

		for i := range 20 {
			site := website("shown", fmt.Sprint("site-", i))
			site.Finalizers = []string{"example.com/a"}
			key := kube.KeyOf(site)
			version := func() string {
				GinkgoHelper()
				got, err := sites.Get(key)
				Expect(err).NotTo(HaveOccurred())
				return got.ResourceVersion
			}
			Expect(c.Create(ctx, site)).To(Succeed())
			Expect(version()).To(Equal(site.ResourceVersion))
			stale := kube.Copy(site)
			site.Spec.Content = "changed"
			Expect(c.Update(ctx, site)).To(Succeed())
			Expect(version()).To(Equal(site.ResourceVersion))
			site.Status.Replicas = 1
			Expect(c.Status().Update(ctx, site)).To(Succeed())
			Expect(version()).To(Equal(site.ResourceVersion))

			var conflict *client.ConflictError
			Expect(errors.As(c.Update(ctx, stale), &conflict)).To(BeTrue())
			passed := make(chan struct{})
			conflict.WhenPassed(func() { close(passed) })
			Eventually(passed).Should(BeClosed())

			Expect(c.Delete(ctx, site)).To(Succeed())
			held, err := sites.Get(key)
			Expect(err).NotTo(HaveOccurred())
			Expect(held.DeletionTimestamp).NotTo(BeNil())
			Expect(c.SetFinalizers(ctx, held, nil)).To(Succeed())
			_, err = sites.Get(key)
			Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)

			name := fmt.Sprint("map-", i)
			Expect(c.Apply(ctx, coreac.ConfigMap(name, "shown").WithData(map[string]string{"k": "v"}))).To(Succeed())
			cm, err := maps.Get(kube.Key{Namespace: "shown", Name: name})
			Expect(err).NotTo(HaveOccurred())
			Expect(cm.Data).To(HaveKeyWithValue("k", "v"))
			Expect(c.Delete(ctx, cm)).To(Succeed())
			_, err = maps.Get(kube.KeyOf(cm))
			Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		}
	})

	It("names a field by which the server does not select", func(ctx SpecContext) {
		informers, err := informer.NewSharedInformerFactory(env.Config(), specScheme(), informer.Options{})
		Expect(err).NotTo(HaveOccurred())
		scope := informer.Scope{FieldSelector: "spec.nope=1"}
		informer.For[*corev1.ConfigMap](informers, scope)
		informer.For[*corev1.Pod](informers, scope)
		informer.For[*Website](informers, scope)

		running, stop := context.WithCancel(ctx)
		var run sync.WaitGroup
		run.Go(func() {
			defer GinkgoRecover()
			Expect(informers.Run(running)).To(Succeed())
		})
		defer run.Wait()
		defer stop()
		Eventually(func(g Gomega) {
			snapshots := informers.Snapshot()
			g.Expect(snapshots).To(HaveLen(3))
			for _, s := range snapshots {
				g.Expect(s.Scopes[0].State).To(Equal(state.Misuse), "%s: %s", s.Kind, s.Scopes[0])
				g.Expect(s.Scopes[0].Reason).To(ContainSubstring("the server cannot select by this field: "))
			}
		}).WithTimeout(time.Minute).Should(Succeed())
	})
})
