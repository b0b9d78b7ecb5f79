// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

// live returns the version of each T in namespace on the server.
func live[T kube.Object](ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	for obj, err := range client.List[T](ctx, outside, client.InNamespace(namespace)) {
		Expect(err).NotTo(HaveOccurred())
		if obj.GetName() != "kube-root-ca.crt" { // a full cluster creates it in every namespace
			out[obj.GetName()] = obj.GetResourceVersion()
		}
	}
	return out
}

// storm writes n times to ten objects from outside: creates, updates, deletes.
func storm[T kube.Object](ctx context.Context, n int, make func(name, value string) T) {
	GinkgoHelper()
	there := map[string]T{}
	for step := range n {
		name := fmt.Sprintf("o-%d", rand.IntN(10))
		obj, exists := there[name]
		switch {
		case !exists:
			obj = make(name, strconv.Itoa(step))
			Expect(outside.Create(ctx, obj)).To(Succeed())
			there[name] = obj
		case rand.IntN(4) == 0:
			Expect(outside.Delete(ctx, obj)).To(Succeed())
			delete(there, name)
		default:
			version := obj.GetResourceVersion()
			obj = make(name, strconv.Itoa(step))
			obj.SetResourceVersion(version)
			Expect(outside.Update(ctx, obj)).To(Succeed())
			there[name] = obj
		}
	}
}

var _ = Describe("each change", func() {
	It("leads to a reconcile that sees it, of built-in and of custom kinds (R1)", func(ctx context.Context) {
		ns := newNamespace(ctx)
		p := newProcess(env.Config(), ns)
		maps := watch[*corev1.ConfigMap](p, "maps", reconcile.Options{}, nil)
		widgets := watch[*widget](p, "widgets", reconcile.Options{}, nil)
		p.start()
		Eventually(widgets.Synced()).Should(BeClosed())
		Eventually(maps.Synced()).Should(BeClosed())

		// One after the other: no later write can make up for one that was missed.
		w := newWidget(ns, "one", "0")
		Expect(outside.Create(ctx, w)).To(Succeed())
		for n := range 20 {
			Eventually(widgets.saw).WithArguments(kube.KeyOf(w)).Should(Equal(w.ResourceVersion))
			w.Spec.Value = strconv.Itoa(n + 1)
			Expect(outside.Update(ctx, w)).To(Succeed())
		}
		Expect(outside.Delete(ctx, w)).To(Succeed())
		Eventually(widgets.saw).WithArguments(kube.KeyOf(w)).Should(Equal(gone))

		// All at once: whatever is merged on the way, the last state arrives.
		storm(ctx, 300, func(name, value string) *corev1.ConfigMap {
			return configMap(ns, name, map[string]string{"value": value})
		})
		storm(ctx, 300, func(name, value string) *widget { return newWidget(ns, name, value) })
		Eventually(maps.last).Should(Equal(live[*corev1.ConfigMap](ctx, ns)))
		Eventually(widgets.last).Should(Equal(live[*widget](ctx, ns)))
		Expect(maps.wrong()).To(BeEmpty(), "no reconcile sees an older version than one before")
		Expect(widgets.wrong()).To(BeEmpty())
		Expect(p.complaints()).To(BeEmpty())
		p.stop()
	})
})

// count is a number in a ConfigMap.
func count(cm *corev1.ConfigMap, field string) int {
	n, _ := strconv.Atoi(cm.Data[field])
	return n
}

// increment returns a copy of cm with field incremented.
func increment(cm *corev1.ConfigMap, field string) *corev1.ConfigMap {
	cm = kube.Copy(cm)
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data[field] = strconv.Itoa(count(cm, field) + 1)
	return cm
}

var _ = Describe("an own write", func() {
	const goal = 200

	It("is what the next reconcile reads: no conflict, no write lost (R4)", func(ctx context.Context) {
		ns := newNamespace(ctx)
		p := newProcess(env.Config(), ns)
		var stale atomic.Int64
		written := 0
		maps := watch(p, "counter", reconcile.Options{Workers: 1}, func(ctx context.Context, cm *corev1.ConfigMap) error {
			if count(cm, "n") != written {
				stale.Add(1)
			}
			if written == goal {
				return nil
			}
			err := p.Client().Update(ctx, increment(cm, "n"))
			if err == nil {
				written++
			}
			return err
		})
		p.start()
		cm := configMap(ns, "counter", map[string]string{"n": "0"})
		Expect(outside.Create(ctx, cm)).To(Succeed())
		number := func(g Gomega) int {
			g.Expect(outside.Get(ctx, kube.KeyOf(cm), cm)).To(Succeed())
			return count(cm, "n")
		}
		// Each write is the event that leads to the next one.
		Eventually(number).Should(Equal(goal))
		Eventually(maps.saw).WithArguments(kube.KeyOf(cm)).Should(Equal(cm.ResourceVersion))
		Expect(stale.Load()).To(BeZero(), "reconciles that read something else than the last own write")
		outcomes := maps.Snapshot().Outcomes
		Expect(outcomes[reconcile.OutcomeConflict]).To(BeZero())
		Expect(outcomes[reconcile.OutcomeError]).To(BeZero())
		Expect(p.complaintsBesides("hot loop")).To(BeEmpty())
		p.stop()
		// The watch event of the controller's own write causes no reconcile.
		Expect(maps.ran(kube.KeyOf(cm))).To(BeNumerically("<=", goal+2))
	})

	It("that meets others' is a quiet conflict, counted and tried again; no write is lost (R6)", func(ctx context.Context) {
		ns := newNamespace(ctx)
		p := newProcess(env.Config(), ns)
		var written atomic.Int64
		intrusions := 0
		key := kube.Key{Namespace: ns, Name: "counter"}
		maps := watch(p, "counter", reconcile.Options{Workers: 1}, func(ctx context.Context, cm *corev1.ConfigMap) error {
			if count(cm, "n") >= goal {
				return nil
			}
			if written.Load()%20 == 0 && intrusions <= int(written.Load())/20 {
				intrusions++ // between this read and this write
				if err := incrementAsOther(ctx, key, "c"); err != nil {
					return reconcile.Terminal(err)
				}
			}
			err := p.Client().Update(ctx, increment(cm, "n"))
			if err == nil {
				written.Add(1)
			}
			return err
		})
		p.start()
		Expect(outside.Create(ctx, configMap(ns, key.Name, map[string]string{}))).To(Succeed())
		others := make(chan error, 2)
		for _, field := range []string{"a", "b"} {
			go func() {
				for range 50 {
					if err := incrementAsOther(ctx, key, field); err != nil {
						others <- err
						return
					}
				}
				others <- nil
			}()
		}
		Eventually(others).Should(Receive(BeNil()))
		Eventually(others).Should(Receive(BeNil()))
		fields := func(g Gomega) []int {
			var cm corev1.ConfigMap
			g.Expect(outside.Get(ctx, key, &cm)).To(Succeed())
			return []int{count(&cm, "n"), count(&cm, "a"), count(&cm, "b"), count(&cm, "c")}
		}
		Eventually(fields).Should(Equal([]int{goal, 50, 50, goal / 20}))
		// The server has a write before its writer gets the answer.
		Eventually(written.Load).Should(Equal(int64(goal)), "each write that succeeded is one in the object")
		outcomes := maps.Snapshot().Outcomes
		Expect(outcomes[reconcile.OutcomeConflict]).To(BeNumerically(">=", goal/20), "conflicts are counted")
		Expect(outcomes[reconcile.OutcomeError]).To(BeZero(), "and are no errors")
		Expect(p.complaintsBesides("hot loop")).To(BeEmpty(), "nor logged as such")
		p.stop()
	})
})

// incrementAsOther acts as another process: it reads and writes until it meets no conflict.
func incrementAsOther(ctx context.Context, key kube.Key, field string) error {
	for {
		cm, err := api.CoreV1().ConfigMaps(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = api.CoreV1().ConfigMaps(key.Namespace).Update(ctx, increment(cm, field), metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}
