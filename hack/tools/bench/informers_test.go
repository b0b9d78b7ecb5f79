// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

const byNode = "spec.nodeName"

func nodeOf(pod *corev1.Pod) []string { return []string{pod.Spec.NodeName} }

func anyNodeOf(obj any) ([]string, error) { return nodeOf(obj.(*corev1.Pod)), nil }

// handler receives each state of each Pod.
type handler func(pod *corev1.Pod)

// reader is the read side of an informer; each function reads as users would.
type reader struct {
	get    func(key) bool
	onNode func(node string) int
	list   func() int
}

// contestant is an informer with indices by namespace and node.
type contestant interface {
	// handle adds a handler; the channel closes when the handler has processed the first
	// list.
	handle(h handler) <-chan struct{}
	// stored closes when the first list is in the store. It is called after run.
	stored() <-chan struct{}
	reader() reader
	run(ctx context.Context)
}

// onFeed returns the constructors of the named contestants on a feed.
func onFeed(names ...string) map[string]func(testing.TB, *feed) contestant {
	all := map[string]func(testing.TB, *feed) contestant{
		// A level-triggered handler, as a source is one.
		"flyball": func(b testing.TB, f *feed) contestant { return newFlyballInformer(b, fed{f}, f, false) },
		// A handler of every event.
		"flyball-every": func(b testing.TB, f *feed) contestant { return newFlyballInformer(b, fed{f}, f, true) },
		// The peers' source, over its channel.
		"flyball-channel": func(b testing.TB, f *feed) contestant {
			return newFlyballInformer(b, clientgo.NewListerWatcher[*corev1.Pod](f.listWatch()), f, false)
		},
		// The peers' source and a handler of every event, as the peers do it.
		"flyball-channel-every": func(b testing.TB, f *feed) contestant {
			return newFlyballInformer(b, clientgo.NewListerWatcher[*corev1.Pod](f.listWatch()), f, true)
		},
		// client-go's interfaces on both sides, with flyball between them.
		"flyball-clientgo": func(b testing.TB, f *feed) contestant {
			i := informer.New(clientgo.NewListerWatcher[*corev1.Pod](f.listWatch()), podKind, informer.Options{PagedLists: f.paged})
			return newClientGo(b, clientgo.NewSharedIndexInformer(i, clientgo.Options{BacklogBytes: f.backlog}))
		},
		"client-go": func(b testing.TB, f *feed) contestant {
			return newClientGo(b, cache.NewSharedIndexInformer(f.listWatch(), &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}))
		},
		"controller-runtime": func(b testing.TB, f *feed) contestant { return newControllerRuntime(b, f) },
	}
	chosen := make(map[string]func(testing.TB, *feed) contestant, len(names))
	for _, name := range names {
		chosen[name] = all[name]
	}
	return chosen
}

// forInformers runs f as a sub-benchmark per contestant, in the order of names.
func forInformers(b *testing.B, f func(b *testing.B, newInformer func(testing.TB, *feed) contestant), names ...string) {
	all := onFeed(names...)
	for _, name := range names {
		b.Run(name, func(b *testing.B) { f(b, all[name]) })
	}
}

// started runs i until the caller calls stop, which waits for the end.
func started(i contestant) (stop func()) { return running(i.run) }

func running(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { run(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

type flyballInformer struct {
	b     testing.TB
	pods  *informer.SharedInformer[*corev1.Pod]
	opts  informer.HandlerOptions
	runIt func(context.Context) error
}

func newFlyballInformer(b testing.TB, lw listwatch.ListerWatcher[*corev1.Pod], f *feed, every bool) contestant {
	pods := informer.New(lw, podKind, informer.Options{PagedLists: f.paged})
	return newFlyballOf(b, pods, informer.HandlerOptions{EveryEvent: every, BacklogBytes: f.backlog}, pods.Run)
}

func newFlyballOf(b testing.TB, pods *informer.SharedInformer[*corev1.Pod], opts informer.HandlerOptions, run func(context.Context) error) contestant {
	if err := pods.AddIndex(byNode, nodeOf); err != nil {
		b.Fatal(err)
	}
	return &flyballInformer{b: b, pods: pods, opts: opts, runIt: run}
}

func (f *flyballInformer) handle(h handler) <-chan struct{} {
	r, err := f.pods.AddHandler(func(e kube.Event[*corev1.Pod]) { h(e.Latest()) }, f.opts)
	if err != nil {
		f.b.Fatal(err)
	}
	return r.Synced()
}

func (f *flyballInformer) stored() <-chan struct{} { return f.pods.Synced() }

func (f *flyballInformer) run(ctx context.Context) {
	if err := f.runIt(ctx); err != nil {
		f.b.Error(err)
	}
}

func (f *flyballInformer) reader() reader {
	lister := f.pods.Lister()
	return reader{
		get: func(k key) bool {
			_, err := lister.Get(k)
			return err == nil
		},
		onNode: func(node string) (n int) {
			pods, err := lister.ByIndex(byNode, node)
			if err != nil {
				f.b.Fatal(err)
			}
			for range pods {
				n++
			}
			return n
		},
		list: func() int {
			pods, err := lister.List(informer.QueryOptions{})
			if err != nil {
				f.b.Fatal(err)
			}
			return len(pods)
		},
	}
}

// clientGo is a cache.SharedIndexInformer, client-go's or ours.
type clientGo struct {
	b    testing.TB
	pods cache.SharedIndexInformer
}

func newClientGo(b testing.TB, pods cache.SharedIndexInformer) contestant {
	if err := pods.AddIndexers(cache.Indexers{byNode: anyNodeOf}); err != nil {
		b.Fatal(err)
	}
	return &clientGo{b: b, pods: pods}
}

func eventHandler(h handler) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { h(obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { h(obj.(*corev1.Pod)) },
	}
}

func (c *clientGo) handle(h handler) <-chan struct{} {
	r, err := c.pods.AddEventHandler(eventHandler(h))
	if err != nil {
		c.b.Fatal(err)
	}
	return r.HasSyncedChecker().Done()
}

func (c *clientGo) stored() <-chan struct{} { return c.pods.HasSyncedChecker().Done() }

func (c *clientGo) run(ctx context.Context) { c.pods.RunWithContext(ctx) }

func (c *clientGo) reader() reader {
	lister := corelisters.NewPodLister(c.pods.GetIndexer())
	return reader{
		get: func(k key) bool {
			_, err := lister.Pods(k.Namespace).Get(k.Name)
			return err == nil
		},
		onNode: func(node string) (n int) {
			pods, err := c.pods.GetIndexer().ByIndex(byNode, node)
			if err != nil {
				c.b.Fatal(err)
			}
			return len(pods)
		},
		list: func() int {
			pods, err := lister.List(labels.Everything())
			if err != nil {
				c.b.Fatal(err)
			}
			return len(pods)
		},
	}
}

// controllerRuntime is a cache with default options.
type controllerRuntime struct {
	b     testing.TB
	cache ctrlcache.Cache
	pods  ctrlcache.Informer
}

func newControllerRuntime(b testing.TB, f *feed) contestant {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(podKind, meta.RESTScopeNamespace)
	return newControllerRuntimeOn(b, &rest.Config{Host: "http://server.invalid"}, ctrlcache.Options{
		Mapper: mapper,
		NewInformer: func(_ cache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(f.listWatch(), obj, resync, indexers)
		},
	})
}

func newControllerRuntimeOn(b testing.TB, cfg *rest.Config, opts ctrlcache.Options) contestant {
	ctrl.SetLogger(logr.Discard())
	opts.Scheme = scheme.Scheme
	if opts.HTTPClient == nil {
		opts.HTTPClient = http.DefaultClient
	}
	all, err := ctrlcache.New(cfg, opts)
	if err != nil {
		b.Fatal(err)
	}
	ctx := logr.NewContext(context.Background(), logr.Discard())
	if err := all.IndexField(ctx, &corev1.Pod{}, byNode, func(obj client.Object) []string { return nodeOf(obj.(*corev1.Pod)) }); err != nil {
		b.Fatal(err)
	}
	pods, err := all.GetInformer(ctx, &corev1.Pod{}, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		b.Fatal(err)
	}
	return &controllerRuntime{b: b, cache: all, pods: pods}
}

func (c *controllerRuntime) handle(h handler) <-chan struct{} {
	r, err := c.pods.AddEventHandler(eventHandler(h))
	if err != nil {
		c.b.Fatal(err)
	}
	return r.HasSyncedChecker().Done()
}

func (c *controllerRuntime) stored() <-chan struct{} {
	return c.pods.(cache.SharedIndexInformer).HasSyncedChecker().Done()
}

func (c *controllerRuntime) run(ctx context.Context) {
	if err := c.cache.Start(ctx); err != nil {
		c.b.Error(err)
	}
}

func (c *controllerRuntime) reader() reader {
	ctx := context.Background()
	return reader{
		get: func(k key) bool {
			var pod corev1.Pod
			return c.cache.Get(ctx, k, &pod) == nil
		},
		onNode: func(node string) int {
			var pods corev1.PodList
			if err := c.cache.List(ctx, &pods, client.MatchingFields{byNode: node}); err != nil {
				c.b.Fatal(err)
			}
			return len(pods.Items)
		},
		list: func() int {
			var pods corev1.PodList
			if err := c.cache.List(ctx, &pods); err != nil {
				c.b.Fatal(err)
			}
			return len(pods.Items)
		},
	}
}
