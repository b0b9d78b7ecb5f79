// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// follower is an informer of one namespace with the state of two handlers: one that
// receives states, and one that receives every event.
type follower[T kube.Object] struct {
	*informer.SharedInformer[T]
	namespace string
	mu        struct {
		sync.Mutex
		states map[string]string // name → version, by the first handler
		events map[string]string // and by the second
		log    []string          // of the first: type name
	}
}

// follow adds an informer of T to f, which may be running already.
func follow[T kube.Object](f *informer.SharedInformerFactory, namespace string) *follower[T] {
	GinkgoHelper()
	w := &follower[T]{SharedInformer: informer.For[T](f, informer.Scope{Namespaces: []string{namespace}}), namespace: namespace}
	w.mu.states, w.mu.events = map[string]string{}, map[string]string{}
	for view, opts := range map[*map[string]string]informer.HandlerOptions{
		&w.mu.states: {Name: "states"}, &w.mu.events: {Name: "events", EveryEvent: true},
	} {
		_, err := w.AddHandler(func(e kube.Event[T]) { w.note(*view, e, !opts.EveryEvent) }, opts)
		Expect(err).NotTo(HaveOccurred())
	}
	return w
}

func (w *follower[T]) note(view map[string]string, e kube.Event[T], log bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if log {
		w.mu.log = append(w.mu.log, e.Type.String()+" "+e.Key.Name)
	}
	if e.Type == kube.Deleted {
		delete(view, e.Key.Name)
		return
	}
	view[e.Key.Name] = e.New.GetResourceVersion()
}

// told returns what the handler of states has received since the last call.
func (w *follower[T]) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.mu.log
	w.mu.log = nil
	return log
}

// sees returns the names and versions in the cache and in both handlers.
func (w *follower[T]) sees() map[string]map[string]string {
	cache := map[string]string{}
	for obj := range w.Lister().All() {
		cache[obj.GetName()] = obj.GetResourceVersion()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]map[string]string{"cache": cache, "states": {}, "events": {}}
	for name, version := range w.mu.states {
		out["states"][name] = version
	}
	for name, version := range w.mu.events {
		out["events"][name] = version
	}
	return out
}

// equalsServer waits until the cache and both handlers equal a fresh list.
func (w *follower[T]) equalsServer(ctx context.Context) {
	GinkgoHelper()
	want := live[T](ctx, w.namespace)
	Eventually(w.sees).WithTimeout(2*time.Minute).Should(Equal(map[string]map[string]string{
		"cache": want, "states": want, "events": want,
	}), func() string {
		return fmt.Sprintf("cache and handlers of %s equal a fresh list; it stands: %v", w, w.Snapshot().Scopes)
	})
}

// scope returns the state of its one list and watch.
func (w *follower[T]) scope() state.Scope { return w.Snapshot().Scopes[0] }
func (w *follower[T]) state() state.State { return w.scope().State }

// three are followers of three kinds in one namespace, from one factory.
type three struct {
	namespace string
	network   *envtest.Network
	factory   *informer.SharedInformerFactory
	maps      *follower[*corev1.ConfigMap]
	secrets   *follower[*corev1.Secret]
	widgets   *follower[*widget]
}

// followThree runs followers with the credentials of cfg until the spec ends.
func followThree(ctx context.Context, cfg *rest.Config, namespace string) *three {
	GinkgoHelper()
	t := &three{namespace: namespace, network: &envtest.Network{}}
	cfg.Dial = t.network.Dial
	var err error
	t.factory, err = informer.NewSharedInformerFactory(cfg, scheme, informer.Options{Logger: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	t.maps = follow[*corev1.ConfigMap](t.factory, namespace)
	t.secrets = follow[*corev1.Secret](t.factory, namespace)
	t.widgets = follow[*widget](t.factory, namespace)
	running, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- t.factory.Run(running) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).WithTimeout(20*time.Second).Should(Receive(BeNil()), "Run returns after its context has ended")
	})
	return t
}

// write creates, updates and deletes objects of each kind: name stays, others are deleted.
func (t *three) write(ctx context.Context, name string) {
	GinkgoHelper()
	for _, obj := range []kube.Object{
		configMap(t.namespace, name, map[string]string{"value": "1"}),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name}},
		newWidget(t.namespace, name, "1"),
	} {
		Expect(outside.Create(ctx, obj)).To(Succeed())
		obj.SetLabels(map[string]string{"changed": "true"})
		Expect(outside.Update(ctx, obj)).To(Succeed())
	}
	for n := range 3 {
		passing := newWidget(t.namespace, fmt.Sprintf("%s-passing-%d", name, n), "1")
		Expect(outside.Create(ctx, passing)).To(Succeed())
		Expect(outside.Delete(ctx, passing)).To(Succeed())
	}
}

// equalServer calls equalsServer for all three.
func (t *three) equalServer(ctx context.Context) {
	GinkgoHelper()
	t.maps.equalsServer(ctx)
	t.secrets.equalsServer(ctx)
	t.widgets.equalsServer(ctx)
}

// states returns the states of the three.
func (t *three) states() []state.State {
	return []state.State{t.maps.state(), t.secrets.state(), t.widgets.state()}
}
