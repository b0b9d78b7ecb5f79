// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

var _ = Describe("A program in two shards", Ordered, func() {
	const label = "manager.flyball.dev/shard"
	key := kube.Key{Namespace: "default", Name: "moving"}
	var admin *client.Client
	// program runs a shard, which writes its name into a Secret for each of its ConfigMaps.
	program := func(shard string) (stop func()) {
		GinkgoHelper()
		m, err := manager.New(manager.Options{
			Config: env.Config(), Logger: quiet(), HealthAddress: "127.0.0.1:0", MetricsAddress: "0",
			Sharding:       &manager.Sharding{Label: label, Kinds: []runtime.Object{&corev1.ConfigMap{}}, Shard: shard},
			LeaderElection: &manager.LeaderElection{ID: "sharded", Namespace: "default"},
		})
		Expect(err).NotTo(HaveOccurred())
		configMaps := informer.For[*corev1.ConfigMap](m.Informers())
		secrets := informer.For[*corev1.Secret](m.Informers())
		children := reconcile.NewChildSet(m.Client(), m.Scheme(), []reconcile.ChildKind{reconcile.Children(secrets)},
			reconcile.ChildSetOptions{FieldOwner: "sharded", AskParent: true})
		c := reconcile.For(configMaps, func(ctx context.Context, configMap *corev1.ConfigMap) (reconcile.Result, error) {
			if configMap.Name != key.Name {
				return reconcile.Result{}, nil
			}
			_, err := children.Apply(ctx, configMap, &corev1.Secret{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
				Data:       map[string][]byte{"shard": []byte(shard), "value": []byte(configMap.Data["value"])},
			})
			return reconcile.Result{}, err
		}, reconcile.Options{})
		c.Watch(source.Owned(secrets, configMaps))
		Expect(m.Add(c)).To(Succeed())
		return start(m)
	}
	is := func(ctx context.Context) func(Gomega) string {
		return func(g Gomega) string {
			var secret corev1.Secret
			g.Expect(admin.Get(ctx, key, &secret)).To(Succeed())
			return string(secret.Data["shard"]) + "=" + string(secret.Data["value"])
		}
	}
	edit := func(ctx context.Context, change func(*corev1.ConfigMap)) {
		GinkgoHelper()
		var before corev1.ConfigMap
		Expect(admin.Get(ctx, key, &before)).To(Succeed())
		after := before.DeepCopy()
		change(after)
		_, err := admin.PatchChanges(ctx, &before, after)
		Expect(err).NotTo(HaveOccurred())
	}

	It("serves each object by the shard of its label, also when that changes", func(ctx context.Context) {
		var err error
		admin, err = client.New(env.Config(), clientscheme.Scheme, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(program(""))
		stop := program("a")
		Expect(admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string]string{"value": "1"}})).To(Succeed())
		Eventually(is(ctx)).WithContext(ctx).Should(Equal("=1"))

		edit(ctx, func(c *corev1.ConfigMap) { c.Labels = map[string]string{label: "a"}; c.Data["value"] = "2" })
		Eventually(is(ctx)).WithContext(ctx).Should(Equal("a=2"))
		for _, lease := range []string{"sharded", "sharded-a"} {
			Expect(admin.Get(ctx, kube.Key{Namespace: "default", Name: lease}, &coordinationv1.Lease{})).To(Succeed())
		}

		By("stopping that shard: no other takes its objects")
		stop()
		edit(ctx, func(c *corev1.ConfigMap) { c.Data["value"] = "3" })
		Consistently(is(ctx)).WithContext(ctx).WithTimeout(time.Second).Should(Equal("a=2"))
		edit(ctx, func(c *corev1.ConfigMap) { c.Labels = nil })
		Eventually(is(ctx)).WithContext(ctx).Should(Equal("=3"))
	})
})
