// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

// Each spec brings a process to a certain point and stops it there; stop verifies that Run
// returns nil within 20 seconds and that no goroutine is left.
var _ = Describe("a shutdown", func() {
	var (
		ns   string
		stay func(error) func(context.Context, *corev1.ConfigMap) error
	)
	BeforeEach(func(ctx context.Context) {
		ns = newNamespace(ctx)
		Expect(outside.Create(ctx, configMap(ns, "a", map[string]string{"value": "1"}))).To(Succeed())
		stay = func(err error) func(context.Context, *corev1.ConfigMap) error {
			return func(context.Context, *corev1.ConfigMap) error { return err }
		}
	})
	key := func() kube.Key { return kube.Key{Namespace: ns, Name: "a"} }

	It("before anything has synced", func() {
		for range 20 {
			p := newProcess(env.Config(), ns)
			watch[*corev1.ConfigMap](p, "maps", reconcile.Options{}, nil)
			watch[*widget](p, "widgets", reconcile.Options{}, nil)
			p.start()
			p.stop()
		}
	})

	It("while the API server is away, before and after the first sync", func(ctx context.Context) {
		synced, unsynced := newProcess(env.Config(), ns), newProcess(env.Config(), ns)
		maps := watch[*corev1.ConfigMap](synced, "maps", reconcile.Options{}, nil)
		late := watch[*corev1.ConfigMap](unsynced, "maps", reconcile.Options{}, nil)
		synced.start()
		Eventually(maps.Synced()).Should(BeClosed())
		Expect(env.KillAPIServer()).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(env.StartAPIServer(ctx)).To(Succeed()) })
		unsynced.start()
		Eventually(maps.state).Should(Equal(state.Stale))
		Eventually(func() string { return late.informer.Snapshot().Scopes[0].Reason }).Should(ContainSubstring("connection refused"))
		Expect(late.Snapshot().Synced).To(BeFalse())
		unsynced.before = synced.before // the two ran at the same time
		unsynced.cancel()
		synced.stop()
		unsynced.stop()
	})

	It("while a kind is not served and another one is forbidden", func() {
		cfg, err := env.User("stranger")
		Expect(err).NotTo(HaveOccurred())
		p := newProcess(cfg, ns)
		maps := watch[*corev1.ConfigMap](p, "maps", reconcile.Options{}, nil)
		p.start()
		Eventually(maps.state).Should(Equal(state.Forbidden))
		p.stop()
	})

	It("while Reconcile runs: it ends its work, with writes that arrive and are read", func(ctx context.Context) {
		p := newProcess(env.Config(), ns)
		begun, release := make(chan struct{}), make(chan struct{})
		var after string
		maps := informer.For[*corev1.ConfigMap](p.Informers()).Lister()
		watch(p, "slow", reconcile.Options{Workers: 1}, func(ctx context.Context, cm *corev1.ConfigMap) error {
			if cm.Name != "a" || cm.Data["value"] == "2" {
				return nil
			}
			close(begun)
			<-release
			cm = kube.Copy(cm)
			cm.Data["value"] = "2"
			err := p.Client().Update(ctx, cm)
			if got, getErr := maps.Get(key()); getErr == nil {
				after = got.Data["value"]
			}
			return errors.Join(err, p.Client().Create(ctx, newWidget(ns, "made", "in the drain")))
		})
		p.start()
		Eventually(begun).Should(BeClosed())
		p.cancel()
		Eventually(p.ready).Should(ContainSubstring("[-]shutdown failed: the manager is stopping since "))
		Consistently(p.done, 100*time.Millisecond).ShouldNot(Receive(), "the manager waits for the reconcile")
		close(release)
		p.stop()
		Expect(p.complaints()).To(BeEmpty())
		Expect(after).To(Equal("2"), "an own write is read also then")
		Expect(outside.Get(ctx, kube.Key{Namespace: ns, Name: "made"}, &widget{})).To(Succeed())
	})

	for name, fault := range map[string]func() error{
		"panics":         func() error { panic("again") },
		"returns errors": func() error { return errors.New("again") },
	} {
		It("while Reconcile "+name+" and keys wait for their backoff", func() {
			p := newProcess(env.Config(), ns)
			maps := watch(p, "failing", reconcile.Options{}, func(context.Context, *corev1.ConfigMap) error { return fault() })
			p.start()
			Eventually(maps.ran).WithArguments(key()).Should(BeNumerically(">", 5))
			p.stop()
		})
	}

	It("while a conflict waits for the cache", func(ctx context.Context) {
		p := newProcess(env.Config(), ns)
		maps := watch(p, "stale", reconcile.Options{}, func(ctx context.Context, cm *corev1.ConfigMap) error {
			old := kube.Copy(cm)
			old.ResourceVersion = "1"
			return p.Client().Update(ctx, old)
		})
		p.start()
		Eventually(func() uint64 { return maps.Snapshot().Outcomes[reconcile.OutcomeConflict] }).Should(BeNumerically(">", 3))
		p.stop()
		Expect(p.complaints()).To(BeEmpty())
	})

	It("while handlers, mappers and keys that are added again and again are at work", func(ctx context.Context) {
		p := newProcess(env.Config(), ns)
		maps := watch(p, "busy", reconcile.Options{}, func(ctx context.Context, cm *corev1.ConfigMap) error {
			// Each write is an event for a key that is being reconciled.
			return p.Client().Patch(ctx, configMap(cm.Namespace, cm.Name, nil), client.MergePatch(increment(cm, "n")))
		})
		_, err := maps.informer.AddHandler(func(kube.Event[*corev1.ConfigMap]) { panic("again") }, informer.HandlerOptions{})
		Expect(err).NotTo(HaveOccurred())
		p.start()
		Eventually(maps.ran).WithArguments(key()).Should(BeNumerically(">", 20))
		p.stop()
	})

	It("while a compacted watch lists anew", func(ctx context.Context) {
		p := newProcess(env.Config(), ns)
		maps := watch[*corev1.ConfigMap](p, "maps", reconcile.Options{}, stay(nil))
		p.start()
		Eventually(maps.Synced()).Should(BeClosed())
		Expect(env.KillAPIServer()).To(Succeed())
		Expect(env.Compact(ctx)).To(Succeed())
		Expect(env.StartAPIServer(ctx)).To(Succeed())
		p.stop()
	})
})
