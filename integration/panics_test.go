// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// blame panics if the object asks for it, as a user's function does that does not handle
// such an object.
func blame(where string, obj kube.Object) {
	if cm, ok := obj.(*corev1.ConfigMap); ok && cm.Data["panic"] == where {
		panic("a fault of the " + where)
	}
}

var _ = Describe("a function of the user that panics", func() {
	var (
		ns    string
		p     *process
		maps  *informer.SharedInformer[*corev1.ConfigMap]
		reads *watcher[*corev1.ConfigMap] // another controller, which nothing may harm
	)
	BeforeEach(func(ctx context.Context) {
		ns = newNamespace(ctx)
		p = newProcess(env.Config(), ns)
		maps = informer.For[*corev1.ConfigMap](p.Informers())
		reads = watch[*corev1.ConfigMap](p, "beside", reconcile.Options{}, nil)
	})
	key := func(name string) kube.Key { return kube.Key{Namespace: ns, Name: name} }
	// put writes an object that makes where panic, or nothing if where is empty.
	put := func(ctx context.Context, name, where string) string {
		GinkgoHelper()
		cm := configMap(ns, name, map[string]string{"panic": where})
		err := outside.Create(ctx, cm)
		if err != nil {
			err = outside.Patch(ctx, cm, client.MergePatch(map[string]any{"data": cm.Data}))
		}
		Expect(err).NotTo(HaveOccurred())
		return cm.ResourceVersion
	}
	// goesOn verifies that other objects, and later versions of name, are reconciled.
	goesOn := func(ctx context.Context, name string, by ...*watcher[*corev1.ConfigMap]) {
		GinkgoHelper()
		other, healed := put(ctx, "other", ""), put(ctx, name, "")
		for _, w := range append(by, reads) {
			Eventually(w.saw).WithArguments(key("other")).Should(Equal(other), "another object, by %s", w.Name())
			Eventually(w.saw).WithArguments(key(name)).Should(Equal(healed), "the object's next version, by %s", w.Name())
		}
		Expect(p.Snapshot().Phase).To(Equal(manager.PhaseRunning))
		p.stop()
	}

	It("Reconcile: the key is tried again, the worker lives on", func(ctx context.Context) {
		var faults atomic.Int64
		w := watch(p, "clumsy", reconcile.Options{Workers: 1}, func(_ context.Context, cm *corev1.ConfigMap) error {
			if faults.Load() < 3 && cm.Name == "bad" {
				faults.Add(1)
				blame("Reconcile", cm)
			}
			return nil
		})
		p.start()
		put(ctx, "bad", "Reconcile")
		Eventually(w.ran).WithArguments(key("bad")).Should(Equal(4), "three panics and a success, without another event")
		Expect(w.Snapshot().Outcomes[reconcile.OutcomePanic]).To(Equal(uint64(3)))
		Eventually(p.log).WithArguments("Reconcile panicked; retrying with backoff", "a fault of the Reconcile", `"controller"="clumsy"`,
			`"key"="`+ns+`/bad"`, `"reconcileID"=`, "panics_test.go").ShouldNot(BeEmpty(), "the first panic is logged with its stack; later lines are paced")
		goesOn(ctx, "bad", w)
	})

	It("a predicate: the event passes", func(ctx context.Context) {
		w := sourced(p, "filtered", maps, source.Self, source.When(func(e kube.Event[kube.Object]) bool {
			blame("predicate", e.Latest())
			return true
		}))
		p.start()
		version := put(ctx, "bad", "predicate")
		Eventually(w.saw).WithArguments(key("bad")).Should(Equal(version))
		Expect(w.Snapshot().Sources[0].Panics).To(Equal(uint64(1)))
		Eventually(p.log).WithArguments("Predicate panicked", "a fault of the predicate", `"source"="kind ConfigMap"`, `"object"=`, "bad", "panics_test.go").Should(HaveLen(1))
		goesOn(ctx, "bad", w)
	})

	It("a mapper: the keys of that state are lost, those of the next are not", func(ctx context.Context) {
		w := sourced(p, "mapped", maps, func(obj kube.Object) iter.Seq[kube.Key] {
			blame("mapper", obj)
			return source.Self(obj)
		})
		p.start()
		put(ctx, "bad", "mapper")
		Eventually(func() uint64 { return w.Snapshot().Sources[0].Panics }).Should(Equal(uint64(1)))
		Eventually(p.log).WithArguments("Mapper panicked", "a fault of the mapper", `"source"="kind ConfigMap"`, "bad", "panics_test.go").Should(HaveLen(1))
		goesOn(ctx, "bad", w)
	})

	It("an index function: the object is there without its values", func(ctx context.Context) {
		Expect(maps.AddIndex("first", func(cm *corev1.ConfigMap) []string {
			blame("index", cm)
			return []string{cm.Name[:1]}
		})).To(Succeed())
		p.start()
		version := put(ctx, "bad", "index")
		put(ctx, "better", "")
		Eventually(reads.saw).WithArguments(key("bad")).Should(Equal(version))
		first := func(g Gomega) []kube.Key {
			objects, err := maps.Lister().List(informer.QueryOptions{Index: "first", IndexValue: "b"})
			g.Expect(err).NotTo(HaveOccurred())
			var keys []kube.Key
			for _, obj := range objects {
				keys = append(keys, kube.KeyOf(obj))
			}
			return keys
		}
		Eventually(first).Should(ConsistOf(key("better")))
		Expect(maps.Snapshot().IndexPanics).To(Equal(uint64(1)))
		Eventually(p.log).WithArguments("index function panicked", "a fault of the index", `"kind"="ConfigMap"`, "ConfigMap "+ns+"/bad", `\"first\"`, "panics_test.go").Should(HaveLen(1))
		put(ctx, "bad", "")
		Eventually(first).Should(ConsistOf(key("better"), key("bad")))
		goesOn(ctx, "bad")
	})

	It("a handler: it is given the next event, and so are the others", func(ctx context.Context) {
		var mu sync.Mutex
		var given []string
		reg, err := maps.AddHandler(func(e kube.Event[*corev1.ConfigMap]) {
			blame("handler", e.New)
			mu.Lock()
			defer mu.Unlock()
			given = append(given, e.Key.Name)
		}, informer.HandlerOptions{Name: "hasty"})
		Expect(err).NotTo(HaveOccurred())
		p.start()
		Eventually(reg.Synced()).Should(BeClosed())
		put(ctx, "bad", "handler")
		put(ctx, "good", "")
		Eventually(func() []string {
			mu.Lock()
			defer mu.Unlock()
			return given
		}).Should(ContainElement("good"))
		Expect(reg.Snapshot().Panics).To(Equal(uint64(1)))
		Eventually(p.log).WithArguments("andler panicked", "a fault of the handler", `"handler"="hasty"`, `"key"="`+ns+`/bad"`, "panics_test.go").Should(HaveLen(1))
		goesOn(ctx, "bad")
	})

	It("a transform: the object is kept as one that cannot be read, and heals", func(ctx context.Context) {
		Expect(maps.SetTransform(func(cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			blame("transform", cm)
			if cm.Data["panic"] == "refuse" {
				return nil, errors.New("refused")
			}
			return cm, nil
		})).To(Succeed())
		p.start()
		for name, text := range map[string]string{"transform": "panic: a fault of the transform", "refuse": "refused"} {
			put(ctx, name, name)
			Eventually(func() error {
				_, err := maps.Lister().Get(key(name))
				return err
			}).Should(MatchError(fmt.Sprintf("read ConfigMap %s/%s: the object cannot be decoded: transform: %s", ns, name, text)))
		}
		Eventually(maps.Snapshot).Should(HaveField("Undecodable", 2))
		Eventually(p.log).WithArguments("a fault of the transform", `"kind"="ConfigMap"`, ns+"/transform", "panics_test.go").ShouldNot(BeEmpty(), "a person who reads the log alone is told, with the stack")
		goesOn(ctx, "transform")
	})
})

// sourced adds a controller like watch does, with its own mapper and predicates.
func sourced(p *process, name string, i *informer.SharedInformer[*corev1.ConfigMap], m source.Mapper[kube.Key], preds ...source.Predicate) *watcher[*corev1.ConfigMap] {
	GinkgoHelper()
	w := &watcher[*corev1.ConfigMap]{informer: i}
	w.mu.seen, w.mu.runs = map[reconcile.Key]string{}, map[reconcile.Key]int{}
	w.Controller = reconcile.New(name, func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
		cm, err := i.Lister().Get(key)
		if err == nil {
			w.note(key, cm.ResourceVersion)
		}
		return reconcile.Result{}, reconcile.IgnoreNotFound(err)
	}, reconcile.Options{})
	w.Watch(source.Kind(i, m, preds...))
	Expect(p.Add(w.Controller)).To(Succeed())
	return w
}
