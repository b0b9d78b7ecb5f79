// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// syncWithin bounds the wait for healthy kinds.
	syncWithin = 4 * time.Minute
	// Kinds are refused for one to two times sickFor before others start.
	sickFor = time.Second
	// shortWatch is the duration after which a proxy ends watches.
	shortWatch = 5 * time.Second
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// things are custom kinds of one API group, each with one object.
type things struct {
	group string
	n     int
	sick  bool // objects read in version v2 need a conversion that always fails
}

func (k things) version() string {
	if k.sick {
		return "v2"
	}
	return "v1"
}

func (k things) resource(n int, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.group, Version: version, Resource: fmt.Sprintf("thing%03ds", n)}
}

func (k things) kind(n int) string { return fmt.Sprintf("Thing%03d", n) }

// install creates the definitions and waits until each is established. It reads no objects
// of the kinds.
func (k things) install(b *testing.B, api dynamic.Interface) {
	open := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	for n := range k.n {
		r := k.resource(n, "v1")
		spec := map[string]any{
			"group": k.group, "scope": "Namespaced",
			"names": map[string]any{"plural": r.Resource, "singular": r.Resource[:len(r.Resource)-1], "kind": k.kind(n), "listKind": k.kind(n) + "List"},
			"versions": []any{
				map[string]any{"name": "v1", "served": true, "storage": true, "schema": open},
				map[string]any{"name": "v2", "served": k.sick, "storage": false, "schema": open},
			},
		}
		if k.sick {
			spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"conversionReviewVersions": []any{"v1"},
				"clientConfig":             map[string]any{"url": "https://127.0.0.1:9/convert"},
			}}
		}
		crd := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": r.Resource + "." + k.group}, "spec": spec,
		}}
		if _, err := api.Resource(crdResource).Create(b.Context(), crd, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	eventually(b, "the definitions are established", func() bool {
		list, err := api.Resource(crdResource).List(b.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		established := 0
		for _, crd := range list.Items {
			conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
			if slices.ContainsFunc(conditions, func(c any) bool {
				m := c.(map[string]any)
				return m["type"] == "Established" && m["status"] == "True"
			}) {
				established++
			}
		}
		return established >= k.n
	})
	if !k.sick {
		return
	}
	for n := range k.n {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.group + "/v1", "kind": k.kind(n), "metadata": map[string]any{"name": "one"}}}
		eventually(b, "an object of "+k.kind(n)+" is stored", func() bool {
			_, err := api.Resource(k.resource(n, "v1")).Namespace("default").Create(b.Context(), obj, metav1.CreateOptions{})
			return err == nil
		})
	}
}

func eventually(b *testing.B, what string, is func() bool) {
	for begun := time.Now(); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Since(begun) > syncWithin {
			b.Fatalf("not within %s: %s", syncWithin, what)
		}
	}
}

// syncing is a set of running informers.
type syncing struct {
	custom   []<-chan struct{}        // of the custom kinds
	core     func() []<-chan struct{} // starts five core kinds
	requests *atomic.Int64
}

// counted returns a configuration for the server that counts requests.
func counted(env *envtest.Environment) (*rest.Config, *atomic.Int64) {
	cfg, n := env.Config(), &atomic.Int64{}
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			n.Add(1)
			return next.RoundTrip(r)
		})
	})
	return cfg, n
}

// startFlyball and startClientGo start informers of the custom kinds.
func startFlyball(b *testing.B, ctx context.Context, running *sync.WaitGroup, env *envtest.Environment, k things) syncing {
	cfg, n := counted(env)
	f, err := informer.NewSharedInformerFactory(cfg, clientscheme.Scheme, informer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := syncing{requests: n}
	for i := range k.n {
		s.custom = append(s.custom, informer.ForKind(f, k.resource(i, k.version()).GroupVersion().WithKind(k.kind(i))).Synced())
	}
	s.core = func() []<-chan struct{} {
		return []<-chan struct{}{
			informer.For[*corev1.Pod](f).Synced(), informer.For[*corev1.ConfigMap](f).Synced(), informer.For[*corev1.Service](f).Synced(),
			informer.For[*corev1.Secret](f).Synced(), informer.For[*corev1.Node](f).Synced(),
		}
	}
	running.Go(func() { _ = f.Run(ctx) })
	return s
}

func startClientGo(b *testing.B, ctx context.Context, running *sync.WaitGroup, env *envtest.Environment, k things) syncing {
	cfg, n := counted(env)
	custom := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(cfg), 0)
	core := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(cfg), 0)
	s := syncing{requests: n}
	add := func(to *[]<-chan struct{}, i cache.SharedIndexInformer) {
		done := make(chan struct{})
		running.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
				close(done)
			}
		})
		*to = append(*to, done)
	}
	for i := range k.n {
		add(&s.custom, custom.ForResource(k.resource(i, k.version())).Informer())
	}
	s.core = func() (synced []<-chan struct{}) {
		v1 := core.Core().V1()
		for _, i := range []cache.SharedIndexInformer{v1.Pods().Informer(), v1.ConfigMaps().Informer(), v1.Services().Informer(), v1.Secrets().Informer(), v1.Nodes().Informer()} {
			add(&synced, i)
		}
		core.Start(ctx.Done())
		return synced
	}
	custom.Start(ctx.Done())
	running.Go(func() {
		<-ctx.Done()
		custom.Shutdown()
		core.Shutdown()
	})
	return s
}

// startControllerRuntime starts the cache of controller-runtime, configured as a manager
// does.
func startControllerRuntime(b *testing.B, ctx context.Context, running *sync.WaitGroup, env *envtest.Environment, k things) syncing {
	ctrl.SetLogger(logr.Discard())
	cfg, n := counted(env)
	all, err := ctrlcache.New(cfg, ctrlcache.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		b.Fatal(err)
	}
	running.Go(func() { _ = all.Start(ctx) })
	s := syncing{requests: n}
	add := func(to *[]<-chan struct{}, obj client.Object) {
		done := make(chan struct{})
		running.Go(func() {
			// Before the cache has started, GetInformer does not wait.
			i, err := all.GetInformer(ctx, obj)
			switch {
			case err == nil && cache.WaitForCacheSync(ctx.Done(), i.HasSynced):
				close(done)
			case ctx.Err() == nil:
				b.Logf("informer of %T %s: %v", obj, obj.GetObjectKind().GroupVersionKind(), err)
			}
		})
		*to = append(*to, done)
	}
	for i := range k.n {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(k.resource(i, k.version()).GroupVersion().WithKind(k.kind(i)))
		add(&s.custom, obj)
	}
	s.core = func() (synced []<-chan struct{}) {
		for _, obj := range []client.Object{&corev1.Pod{}, &corev1.ConfigMap{}, &corev1.Service{}, &corev1.Secret{}, &corev1.Node{}} {
			add(&synced, obj)
		}
		return synced
	}
	return s
}

var starters = []struct {
	name  string
	start func(*testing.B, context.Context, *sync.WaitGroup, *envtest.Environment, things) syncing
}{{"flyball", startFlyball}, {"client-go", startClientGo}, {"controller-runtime", startControllerRuntime}}

// all waits for each channel and returns how long that took, or false.
func all(b *testing.B, begun time.Time, channels []<-chan struct{}) time.Duration {
	late := time.After(syncWithin - time.Since(begun))
	for _, c := range channels {
		select {
		case <-c:
		case <-late:
			b.Logf("not synced within %s", syncWithin)
			return syncWithin
		}
	}
	return time.Since(begun)
}

// BenchmarkIsolation_Sick measures how long informers of five core kinds take to sync
// beside custom kinds that cannot sync: their conversion webhook is down, and the server
// answers 429. Each figure is of ten starts.
func BenchmarkIsolation_Sick(b *testing.B) {
	klog.SetLogger(logr.Discard())
	for _, n := range []int{0, 1, 10} {
		env, err := envtest.Start(b.Context(), envtest.Options{})
		if err != nil {
			b.Fatal(err)
		}
		k := things{group: "sick.example.com", n: n, sick: true}
		k.install(b, dynamic.NewForConfigOrDie(env.Config()))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				took := map[string][]time.Duration{}
				for range 10 {
					for _, s := range starters {
						ctx, cancel := context.WithCancel(b.Context())
						var running sync.WaitGroup
						run := s.start(b, ctx, &running, env, k)
						time.Sleep(sickFor + time.Duration(rand.Int64N(int64(sickFor))))
						begun := time.Now()
						took[s.name] = append(took[s.name], all(b, begun, run.core()))
						cancel()
						running.Wait()
					}
				}
				for _, s := range starters {
					report(b, s.name, took[s.name])
				}
			}
			b.ReportMetric(0, "ns/op")
		})
		env.Stop()
	}
}

// BenchmarkIsolation_Fresh measures how long informers take to sync 300 kinds that were
// just installed, and five core kinds. Each contestant has its own server, because the
// first requests fill the server's caches.
func BenchmarkIsolation_Fresh(b *testing.B) {
	klog.SetLogger(logr.Discard())
	for _, s := range starters {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				env, err := envtest.Start(b.Context(), envtest.Options{})
				if err != nil {
					b.Fatal(err)
				}
				k := things{group: "fresh.example.com", n: 300}
				k.install(b, dynamic.NewForConfigOrDie(env.Config()))
				ctx, cancel := context.WithCancel(b.Context())
				var running sync.WaitGroup
				begun := time.Now()
				run := s.start(b, ctx, &running, env, k)
				b.ReportMetric(all(b, begun, run.core()).Seconds(), "core-s")
				b.ReportMetric(all(b, begun, run.custom).Seconds(), "all-s")
				b.ReportMetric(float64(run.requests.Load()), "requests")
				cancel()
				running.Wait()
				env.Stop()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// report reports the median and the maximum of durations.
func report(b *testing.B, name string, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, name+"-median-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, name+"-worst-ms")
}

// shortened ends each watch cleanly after shortWatch, as some proxies do.
func shortened(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil && r.URL.Query().Get("watch") == "true" {
				answer.Body = newShortBody(answer.Body)
			}
			return answer, err
		})
	})
}

type shortBody struct {
	io.ReadCloser
	over  atomic.Bool
	timer *time.Timer
}

func newShortBody(body io.ReadCloser) *shortBody {
	s := &shortBody{ReadCloser: body}
	s.timer = time.AfterFunc(shortWatch, func() {
		s.over.Store(true)
		_ = body.Close()
	})
	return s
}

func (s *shortBody) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && s.over.Load() {
		err = io.EOF
	}
	return n, err
}

func (s *shortBody) Close() error {
	s.timer.Stop()
	return s.ReadCloser.Close()
}

// BenchmarkIsolation_ShortWatches measures how late informers show a new object when
// watches end after five seconds. All see the same objects.
func BenchmarkIsolation_ShortWatches(b *testing.B) {
	klog.SetLogger(logr.Discard())
	env, err := envtest.Start(b.Context(), envtest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer env.Stop()
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var seen [3]sync.Map
	note := func(who int, name string) { seen[who].LoadOrStore(name, time.Now()) }

	cfg := env.Config()
	shortened(cfg)
	f, err := informer.NewSharedInformerFactory(cfg, clientscheme.Scheme, informer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	ours := informer.For[*corev1.ConfigMap](f)
	if _, err := ours.AddHandler(func(e kube.Event[*corev1.ConfigMap]) { note(0, e.Key.Name) }, informer.HandlerOptions{}); err != nil {
		b.Fatal(err)
	}
	running.Go(func() { _ = f.Run(ctx) })

	cfg = env.Config()
	shortened(cfg)
	core := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(cfg), 0)
	theirs := core.Core().V1().ConfigMaps().Informer()
	if _, err := theirs.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { note(1, obj.(*corev1.ConfigMap).Name) }}); err != nil {
		b.Fatal(err)
	}
	core.Start(ctx.Done())
	running.Go(core.Shutdown)

	ctrl.SetLogger(logr.Discard())
	cfg = env.Config()
	cfg.QPS = -1
	shortened(cfg)
	others, err := ctrlcache.New(cfg, ctrlcache.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		b.Fatal(err)
	}
	running.Go(func() { _ = others.Start(ctx) })
	third, err := others.GetInformer(ctx, &corev1.ConfigMap{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := third.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { note(2, obj.(*corev1.ConfigMap).Name) }}); err != nil {
		b.Fatal(err)
	}
	<-ours.Synced()
	cache.WaitForCacheSync(ctx.Done(), theirs.HasSynced, third.HasSynced)

	api := kubernetes.NewForConfigOrDie(env.Config()).CoreV1().ConfigMaps("default")
	for b.Loop() {
		var took [3][]time.Duration
		for n := range 60 {
			// Long enough for some watches without events.
			time.Sleep(time.Duration(rand.Int64N(int64(4 * time.Second))))
			name := fmt.Sprintf("cm-%d-%d", b.N, n)
			begun := time.Now()
			if _, err := api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
			eventually(b, "all see "+name, func() bool {
				for who := range seen {
					if _, is := seen[who].Load(name); !is {
						return false
					}
				}
				return true
			})
			for who := range took {
				at, _ := seen[who].Load(name)
				took[who] = append(took[who], at.(time.Time).Sub(begun))
			}
		}
		report(b, "flyball", took[0])
		report(b, "client-go", took[1])
		report(b, "controller-runtime", took[2])
	}
	b.ReportMetric(0, "ns/op")
}
