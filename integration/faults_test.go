// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// mirror adds a controller to p that keeps, for each ConfigMap, a widget with its value:
// each change of a ConfigMap leads to a write of a widget.
func mirror(p *process) *watcher[*corev1.ConfigMap] {
	GinkgoHelper()
	return watch(p, "mirror", reconcile.Options{}, func(ctx context.Context, cm *corev1.ConfigMap) error {
		if cm.Data["value"] == "" {
			return nil
		}
		w := newWidget(cm.Namespace, cm.Name, cm.Data["value"])
		return p.Client().Apply(ctx, w, client.FieldOwner("mirror"))
	})
}

// values returns the values of ConfigMaps, or of the widgets that mirror them.
func values[T kube.Object](ctx context.Context, namespace string, of func(T) string) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	for obj, err := range client.List[T](ctx, outside, client.InNamespace(namespace)) {
		Expect(err).NotTo(HaveOccurred())
		if v := of(obj); v != "" {
			out[obj.GetName()] = v
		}
	}
	return out
}

func valueOfMap(cm *corev1.ConfigMap) string { return cm.Data["value"] }
func valueOfWidget(w *widget) string         { return w.Spec.Value }

// writer changes one ConfigMap in a loop until ctx ends, whatever the server does, and
// counts the writes that the server has confirmed.
func writer(ctx context.Context, namespace, name string, confirmed *atomic.Int64) {
	maps := api.CoreV1().ConfigMaps(namespace)
	for n := 1; ctx.Err() == nil; n++ {
		cm := configMap(namespace, name, map[string]string{"value": strconv.Itoa(n)})
		_, err := maps.Update(ctx, cm, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
		}
		if err == nil {
			confirmed.Add(1)
			continue
		}
		select { // the server is unavailable
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var _ = Describe("an API server that is killed with -9 under load", func() {
	It("costs no change: in the end each object is reconciled at its newest version", func(ctx context.Context) {
		ns := newNamespace(ctx)
		p := newProcess(env.Config(), ns)
		maps := mirror(p)
		widgets := watch[*widget](p, "widgets", reconcile.Options{}, nil)
		p.start()
		Eventually(maps.Synced()).Should(BeClosed())

		load, quiet := context.WithCancel(ctx)
		defer quiet()
		var writers sync.WaitGroup
		var confirmed atomic.Int64
		for n := range 4 {
			writers.Go(func() { writer(load, ns, fmt.Sprintf("o-%d", n), &confirmed) })
		}
		Eventually(confirmed.Load).Should(BeNumerically(">", 50))
		Expect(env.KillAPIServer()).To(Succeed())
		atKill := confirmed.Load()
		Eventually(maps.state).Should(Equal(state.Stale), "the state says that what is known is from before")
		Eventually(func() string { return maps.informer.Snapshot().Scopes[0].Reason }).Should(And(
			ContainSubstring(`ConfigMap in namespace "`+ns+`"`), ContainSubstring("connection refused")))
		Expect(p.ready()).To(HavePrefix("200"), "what has synced stays synced: no restart of this process heals the server")
		Expect(env.StartAPIServer(ctx)).To(Succeed())
		Eventually(confirmed.Load).Should(BeNumerically(">", atKill+50), "writers go on")
		quiet()
		writers.Wait()

		Eventually(maps.last).Should(Equal(live[*corev1.ConfigMap](ctx, ns)))
		Eventually(values[*widget]).WithArguments(ctx, ns, valueOfWidget).Should(Equal(values(ctx, ns, valueOfMap)))
		Eventually(widgets.last).Should(Equal(live[*widget](ctx, ns)))
		Expect(maps.wrong()).To(BeEmpty(), "no reconcile sees an older version than one before")
		Expect(widgets.wrong()).To(BeEmpty())
		p.stop()
	})
})

var _ = Describe("etcd compacted under a running watch", func() {
	It("leads to a relist that finds what was missed: created, changed, deleted", func(ctx context.Context) {
		ns := newNamespace(ctx)
		for _, name := range []string{"stays", "changes", "goes", "comes-again"} {
			Expect(outside.Create(ctx, configMap(ns, name, map[string]string{"value": "1"}))).To(Succeed())
		}
		network := &envtest.Network{}
		cfg := env.Config()
		cfg.Dial = network.Dial
		p := newProcess(cfg, ns)
		maps := mirror(p)
		p.start()
		Eventually(maps.last).Should(Equal(live[*corev1.ConfigMap](ctx, ns)))
		key := func(name string) kube.Key { return kube.Key{Namespace: ns, Name: name} }
		Eventually(values[*widget]).WithArguments(ctx, ns, valueOfWidget).Should(HaveLen(4))
		Eventually(func() int { return maps.Snapshot().Queue.Held }).Should(BeZero(), "no answer is on its way")
		quiet := maps.ran(key("stays"))

		network.Shut()
		Expect(outside.Create(ctx, configMap(ns, "comes", map[string]string{"value": "2"}))).To(Succeed())
		Expect(outside.Patch(ctx, configMap(ns, "changes", nil), client.MergePatch(map[string]any{"data": map[string]string{"value": "2"}}))).To(Succeed())
		Expect(outside.Delete(ctx, configMap(ns, "goes", nil))).To(Succeed())
		Expect(outside.Delete(ctx, configMap(ns, "comes-again", nil))).To(Succeed())
		Expect(outside.Create(ctx, configMap(ns, "comes-again", map[string]string{"value": "2"}))).To(Succeed())
		Expect(env.KillAPIServer()).To(Succeed())
		Expect(env.Compact(ctx)).To(Succeed())
		Expect(env.StartAPIServer(ctx)).To(Succeed())
		network.Open()

		Eventually(maps.last).Should(Equal(live[*corev1.ConfigMap](ctx, ns)))
		Expect(maps.saw(key("goes"))).To(Equal(gone))
		Expect(maps.informer.Snapshot().Scopes[0].Relists).To(HaveKeyWithValue("expired", 1), "it was a 410 that led to it")
		Expect(maps.ran(key("stays"))).To(Equal(quiet), "an object that has not changed is no news")
		Eventually(values[*widget]).WithArguments(ctx, ns, valueOfWidget).Should(Equal(map[string]string{
			"stays": "1", "changes": "2", "goes": "1", "comes-again": "2", "comes": "2",
		}))
		p.ends()
		network.Shut() // ends the connections of this process alone
		p.nothingIsLeft()
	})
})

var _ = Describe("a kind that may not be watched, and one that is not there", func() {
	It("hold up their own controllers alone, say why, and go on when it is granted, when it is installed", func(ctx context.Context) {
		ns := newNamespace(ctx)
		grant(ctx, ns, "apprentice", "", "configmaps")
		cfg, err := env.User("apprentice")
		Expect(err).NotTo(HaveOccurred())
		p := newProcess(cfg, ns)
		maps := watch[*corev1.ConfigMap](p, "maps", reconcile.Options{}, nil)
		widgets := watch[*widget](p, "widgets", reconcile.Options{}, nil)
		late := watch[*latecomer](p, "latecomers", reconcile.Options{}, nil)
		w := newWidget(ns, "a", "1")
		Expect(outside.Create(ctx, w)).To(Succeed())
		p.start()

		Eventually(p.ready).Should(And(
			HavePrefix("503"),
			ContainSubstring("[+]controller/maps ok"),
			ContainSubstring(`[-]informer/Widget.integration.flyball.dev failed: not synced in namespace "`+ns+`": Forbidden since `),
			ContainSubstring(`User "apprentice" cannot `),
			ContainSubstring(`(grant list and watch of it by a Role or ClusterRole; it is asked for again)`),
			ContainSubstring(`[-]controller/widgets failed: not synced: running since `),
			ContainSubstring(`waits for kind Widget`),
			ContainSubstring(`[-]informer/Latecomer.integration.flyball.dev failed: not synced in namespace "`+ns+`": NotServed since `),
			ContainSubstring(`find resource of kind integration.flyball.dev/v1, Kind=Latecomer: not served by the API server (is its CustomResourceDefinition installed?)`),
			ContainSubstring(`next try `)))
		Eventually(p.log).WithArguments("Not up to date: ", "Widget", "is forbidden", `"hint"="grant list and watch`).Should(HaveLen(1), "a person who reads the log alone is told, once")
		Eventually(p.log).WithArguments("Not up to date: ", "Latecomer", "is its CustomResourceDefinition installed?").Should(HaveLen(1))
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		_, err = p.Informers().WaitForSync(short)
		Expect(err).To(MatchError(And(
			ContainSubstring("wait for sync: context deadline exceeded; not synced: Widget in namespace \""+ns+"\": Forbidden"),
			ContainSubstring("Latecomer in namespace \""+ns+"\": NotServed"))))

		cm := configMap(ns, "a", nil)
		Expect(outside.Create(ctx, cm)).To(Succeed())
		Eventually(maps.saw).WithArguments(kube.KeyOf(cm)).Should(Equal(cm.ResourceVersion), "the others go on")

		grant(ctx, ns, "apprentice", group.Group, "widgets")
		grant(ctx, ns, "apprentice", group.Group, "latecomers")
		Expect(env.InstallCRDObjects(ctx, crd("Latecomer"))).To(Succeed())
		l := &latecomer{*newWidget(ns, "a", "1")}
		Expect(outside.Create(ctx, l)).To(Succeed())
		Eventually(widgets.saw).WithArguments(kube.KeyOf(w)).Should(Equal(w.ResourceVersion))
		Eventually(late.saw).WithArguments(kube.KeyOf(l)).Should(Equal(l.ResourceVersion))
		Eventually(p.ready).Should(HavePrefix("200"))
		p.stop()
	})
})

// grant allows user to list and watch a resource in namespace.
func grant(ctx context.Context, namespace, user, apiGroup, resource string) {
	GinkgoHelper()
	name := metav1.ObjectMeta{Namespace: namespace, Name: user + "-" + resource}
	Expect(outside.Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{apiGroup}, Resources: []string{resource}, Verbs: []string{"list", "watch"}},
	}})).To(Succeed())
	Expect(outside.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: name,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
	})).To(Succeed())
}

var _ = Describe("a server that does not know us", func() {
	It("is named as the reason", func(ctx context.Context) {
		cfg := env.Config()
		cfg.CertData, cfg.KeyData, cfg.BearerToken = nil, nil, "expired"
		p := newProcess(cfg, "default")
		maps := watch[*corev1.ConfigMap](p, "maps", reconcile.Options{}, nil)
		p.start()
		Eventually(p.ready).Should(And(HavePrefix("503"), ContainSubstring("Unauthorized since "),
			ContainSubstring("(check the credentials of the kubeconfig or the service account; they are tried again)")))
		Expect(maps.Snapshot().Synced).To(BeFalse())
		Expect(p.Snapshot().Phase).To(Equal(manager.PhaseRunning))
		p.stop()
	})
})
