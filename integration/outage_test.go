// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

var _ = Describe("informers of several kinds", func() {
	It("equal the server again after kill -9 and restart, twice, and serve what they know meanwhile (A3, A13)", Label("A3", "A13"), func(ctx context.Context) {
		t := followThree(ctx, env.Config(), newNamespace(ctx))
		t.write(ctx, "before")
		t.equalServer(ctx)
		for n := range 2 {
			Expect(env.KillAPIServer()).To(Succeed())
			Eventually(t.states).Should(HaveEach(state.Stale), "each kind says that what it knows is from before")
			Eventually(func() string { return t.secrets.scope().Reason }).Should(ContainSubstring("connection refused"))
			_, err := t.secrets.Lister().Get(kube.Key{Namespace: t.namespace, Name: "before"})
			Expect(err).NotTo(HaveOccurred(), "reads go on")
			Expect(env.StartAPIServer(ctx)).To(Succeed())
			t.write(ctx, fmt.Sprintf("after-%d", n))
			t.equalServer(ctx)
			Eventually(t.states).Should(HaveEach(state.Live))
		}
	})

	It("find by a list what they missed when etcd was compacted while the network was away (A3)", Label("A3"), func(ctx context.Context) {
		t := followThree(ctx, env.Config(), newNamespace(ctx))
		t.missed(ctx, func() {
			Expect(env.KillAPIServer()).To(Succeed())
			Expect(env.Compact(ctx)).To(Succeed())
			Expect(env.StartAPIServer(ctx)).To(Succeed())
		})
	})

	It("find it also from a server that has no watch cache and goes on serving (A3)", Label("A3"), func(ctx context.Context) {
		own, err := envtest.Start(ctx, envtest.Options{CRDObjects: []runtime.Object{crd("Widget")}, APIServerArgs: map[string][]string{"watch-cache": {"false"}}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(own.Stop()).To(Succeed()) })
		writesTo(own)
		t := followThree(ctx, own.Config(), newNamespace(ctx))
		t.missed(ctx, func() { Expect(own.Compact(ctx)).To(Succeed()) })
	})

	It("go on from their last version when the server ends a watch cleanly: no list (A8)", Label("A8"), func(ctx context.Context) {
		cfg := env.Config()
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next} })
		t := followThree(ctx, cfg, newNamespace(ctx))
		t.write(ctx, "before")
		t.equalServer(ctx)
		Eventually(func() int {
			return min(t.maps.scope().Watches, t.secrets.scope().Watches, t.widgets.scope().Watches)
		}).Should(BeNumerically(">=", 3), "each watch is opened again and again")
		t.write(ctx, "after")
		t.equalServer(ctx)
		for _, scope := range []state.Scope{t.maps.scope(), t.secrets.scope(), t.widgets.scope()} {
			// A watch that ends early makes the informer look whether the schema has
			// changed, as it has if another spec installs a kind of the same group.
			delete(scope.Relists, "schema changed")
			Expect(scope.Relists).To(BeEmpty(), "what was known is enough to go on from")
		}
	})
})

// impatient makes the server end each watch after two seconds.
type impatient struct{ next http.RoundTripper }

// WrappedRoundTripper lets the end of a run find the remaining connections.
func (i impatient) WrappedRoundTripper() http.RoundTripper { return i.next }

func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	if q := r.URL.Query(); q.Has("watch") {
		q.Set("timeoutSeconds", "2")
		r = r.Clone(r.Context())
		r.URL.RawQuery = q.Encode()
	}
	return i.next.RoundTrip(r)
}

// writesTo redirects the writers from outside to another server until the spec ends.
func writesTo(other *envtest.Environment) {
	GinkgoHelper()
	theirs, its := api, outside
	DeferCleanup(func() { api, outside = theirs, its })
	var err error
	api = kubernetes.NewForConfigOrDie(other.Config())
	outside, err = client.New(other.Config(), scheme, client.Options{})
	Expect(err).NotTo(HaveOccurred())
}

// missed changes objects while the followers cannot see it, calls forget to make the server
// lose the history, and expects a relist by difference.
func (t *three) missed(ctx context.Context, forget func()) {
	GinkgoHelper()
	for _, name := range []string{"stays", "changes", "goes", "comes-again"} {
		Expect(outside.Create(ctx, configMap(t.namespace, name, nil))).To(Succeed())
	}
	t.write(ctx, "before")
	t.equalServer(ctx)
	t.maps.told()

	t.network.Shut()
	change := client.MergePatch(map[string]any{"data": map[string]string{"value": "2"}})
	Expect(outside.Patch(ctx, configMap(t.namespace, "changes", nil), change)).To(Succeed())
	for _, name := range []string{"goes", "comes-again"} {
		Expect(outside.Delete(ctx, configMap(t.namespace, name, nil))).To(Succeed())
	}
	Expect(outside.Create(ctx, configMap(t.namespace, "comes-again", nil))).To(Succeed())
	t.write(ctx, "meanwhile")
	forget()
	t.network.Open()

	t.equalServer(ctx)
	Expect(t.maps.told()).To(ConsistOf(
		"updated changes", "deleted goes", "deleted comes-again", "added comes-again", "added meanwhile",
	), "the differences alone are told, and another object of the same name is not an update")
	for kind, relists := range map[string]map[string]int{
		"ConfigMap": t.maps.scope().Relists, "Secret": t.secrets.scope().Relists, "Widget": t.widgets.scope().Relists,
	} {
		delete(relists, "schema changed") // a restarted server publishes the schemas of a group one by one
		Expect(relists).To(Equal(map[string]int{"expired": 1}), "%s: one list, because of a 410", kind)
	}
	_, err := t.maps.Lister().Get(kube.Key{Namespace: t.namespace, Name: "goes"})
	Expect(err).To(MatchError(ContainSubstring("not found")))
}
