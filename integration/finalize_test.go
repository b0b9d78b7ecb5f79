// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

// cleaning adds a controller to p whose cleanup writes its own object each time that it runs.
func cleaning[T kube.Object](p *process, objects *informer.SharedInformer[T]) *atomic.Int32 {
	GinkgoHelper()
	runs := new(atomic.Int32)
	nothing := func(context.Context, T) (reconcile.Result, error) { return reconcile.Result{}, nil }
	c := reconcile.For(objects, nothing, reconcile.Options{Name: fmt.Sprintf("cleaning-%T", *new(T))})
	c.Finalize("integration.flyball.dev/cleanup", p.Client(), func(ctx context.Context, obj T) (reconcile.Result, error) {
		marked := kube.Copy(obj)
		marked.SetAnnotations(map[string]string{"cleaned": fmt.Sprint(runs.Add(1))})
		_, err := p.Client().PatchChanges(ctx, obj, marked)
		return reconcile.Result{}, err
	})
	Expect(p.Add(c)).To(Succeed())
	return runs
}

var _ = Describe("a cleanup that writes its own object", func() {
	for name, late := range map[string]time.Duration{"watches in time": 0, "watches 400 ms late": 400 * time.Millisecond} {
		It("runs once, and the object goes, with "+name+" (R26)", func(ctx context.Context) {
			ns := newNamespace(ctx)
			cfg := env.Config()
			if late > 0 {
				cfg = newLagging(cfg, late)
			}
			p := newProcess(cfg, ns)
			runs := map[string]*atomic.Int32{
				"ConfigMap":    cleaning(p, informer.For[*corev1.ConfigMap](p.Informers())),
				"Widget":       cleaning(p, informer.For[*widget](p.Informers())),
				"Unstructured": cleaning(p, informer.ForKind(p.Informers(), corev1.SchemeGroupVersion.WithKind("Secret"))),
			}
			objects := []kube.Object{configMap(ns, "a", nil), newWidget(ns, "a", "1"), secret(ns, "a")}
			for _, obj := range objects {
				Expect(outside.Create(ctx, obj)).To(Succeed())
			}
			p.start()
			for _, obj := range objects {
				Eventually(func() ([]string, error) {
					err := outside.Get(ctx, kube.KeyOf(obj), obj)
					return obj.GetFinalizers(), err
				}).Should(HaveLen(1))
				Expect(outside.Delete(ctx, obj)).To(Succeed())
				Eventually(func() bool { return apierrors.IsNotFound(outside.Get(ctx, kube.KeyOf(obj), obj)) }).Should(BeTrue())
			}
			for kind, n := range runs {
				Expect(n.Load()).To(BeEquivalentTo(1), kind)
			}
			Expect(p.complaints()).To(BeEmpty())
			p.ends()
		})
	}
})

func secret(namespace, name string) *corev1.Secret {
	s := &corev1.Secret{}
	s.Namespace, s.Name = namespace, name
	return s
}
