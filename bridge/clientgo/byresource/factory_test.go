// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package byresource_test

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo/byresource"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

var widgets = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "widgets"}

func newFlyball(t *testing.T) *informer.SharedInformerFactory {
	t.Helper()
	f, err := informer.NewSharedInformerFactory(&rest.Config{Host: "https://flyball.invalid"}, runtime.NewScheme(), informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// forEach runs test for both factories.
func forEach(t *testing.T, opts byresource.Options, test func(t *testing.T, f *informer.SharedInformerFactory, of func(schema.GroupVersionResource) informers.GenericInformer, start func(<-chan struct{}))) {
	t.Run("dynamic", func(t *testing.T) {
		f := newFlyball(t)
		d := byresource.NewDynamic(f, opts)
		test(t, f, d.ForResource, d.Start)
	})
	t.Run("metadata", func(t *testing.T) {
		f := newFlyball(t)
		m := byresource.NewMetadata(f, opts)
		test(t, f, m.ForResource, m.Start)
	})
}

func TestFactory_EachResourceHasOneInformer_G6(t *testing.T) {
	forEach(t, byresource.Options{}, func(t *testing.T, f *informer.SharedInformerFactory, of func(schema.GroupVersionResource) informers.GenericInformer, start func(<-chan struct{})) {
		found := make([]cache.SharedIndexInformer, 8)
		var calls sync.WaitGroup
		for i := range found {
			calls.Go(func() { found[i] = of(widgets).Informer() })
		}
		calls.Wait()
		for _, i := range found {
			if i != found[0] {
				t.Fatal("calls at the same time have different informers: indexers of one are not in the other")
			}
		}
		informer.ForResource(f, widgets)
		informer.ForResourceMetadata(f, widgets)
		if got := len(f.Snapshot()); got != 2 {
			t.Errorf("the flyball factory has %d informers, want 2, one per representation: the adapter and flyball's own do not share", got)
		}
	})
}

func TestFactory_TweakListOptionsIsTheScope_G7(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	calls := 0
	log := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, args)
	}, funcr.Options{})
	opts := byresource.Options{Namespace: "prod", Logger: log, TweakListOptions: func(list *metav1.ListOptions) {
		calls++
		list.LabelSelector, list.FieldSelector = "app=web", "metadata.name!=a"
		list.ResourceVersion, list.Limit = "0", 100
	}}
	forEach(t, opts, func(t *testing.T, f *informer.SharedInformerFactory, of func(schema.GroupVersionResource) informers.GenericInformer, start func(<-chan struct{})) {
		of(widgets)
		of(widgets.GroupVersion().WithResource("gadgets"))
		ended := make(chan struct{})
		close(ended)
		start(ended)
		want := listwatch.Scope{Namespace: "prod", LabelSelector: "app=web", FieldSelector: "metadata.name!=a"}
		for _, s := range f.Snapshot() {
			if len(s.Scopes) != 1 || s.Scopes[0].Scope != want {
				t.Errorf("%s is watched %v, want %s", s.Kind, s.Scopes, want)
			}
		}
	})
	if calls != 2 {
		t.Errorf("TweakListOptions was called %d times by two factories, want once each", calls)
	}
	if len(lines) != 2 || !strings.Contains(lines[0], `"ignored"=["limit" "resourceVersion"]`) && !strings.Contains(lines[0], `["limit","resourceVersion"]`) {
		t.Errorf("logged %q, want one line per factory that names limit and resourceVersion, which have no effect", lines)
	}
}

func TestFactory_MisuseIsRememberedByTheFlyballFactory(t *testing.T) {
	forEach(t, byresource.Options{}, func(t *testing.T, f *informer.SharedInformerFactory, of func(schema.GroupVersionResource) informers.GenericInformer, start func(<-chan struct{})) {
		i := of(schema.GroupVersionResource{Resource: "widgets"})
		if _, err := i.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{}); err == nil {
			t.Error("a resource without a version has an informer that takes handlers")
		}
		if err := f.Run(t.Context()); err == nil {
			t.Error("Run says nothing of a resource without a version")
		}
	})
	if _, err := byresource.NewDynamic(nil, byresource.Options{}).ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{}); err == nil {
		t.Error("without a flyball factory there is an informer that takes handlers")
	}
}

func TestFactory_StartAndShutdownAreHarmless(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := newFlyball(t)
	dynamic, metadata := byresource.NewDynamic(f, byresource.Options{}), byresource.NewMetadata(f, byresource.Options{})
	lister := dynamic.ForResource(widgets).Lister()
	metadata.ForResource(widgets)
	dynamic.Start(ctx.Done())
	metadata.Start(ctx.Done())
	for name, synced := range map[string]map[schema.GroupVersionResource]bool{
		"dynamic": dynamic.WaitForCacheSync(ctx.Done()), "metadata": metadata.WaitForCacheSync(ctx.Done()),
	} {
		if got, asked := synced[widgets]; got || !asked {
			t.Errorf("%s: %v, want widgets as not synced, since nobody ran the flyball factory", name, synced)
		}
	}
	for _, f := range []any{dynamic, metadata} {
		// The result is of client-go's type, where client-go has one.
		wait := reflect.ValueOf(f).MethodByName("WaitForCacheSyncWithContext")
		result := wait.Call([]reflect.Value{reflect.ValueOf(ctx)})[0]
		synced := result.FieldByName("Synced").Interface().(map[schema.GroupVersionResource]bool)
		if err := result.FieldByName("Err").Interface(); err != context.Canceled || len(synced) != 1 || synced[widgets] {
			t.Errorf("%T: %v and %v, want widgets as not synced, since the context ended", f, synced, err)
		}
	}
	dynamic.Shutdown()
	metadata.Shutdown()
	if found, err := lister.List(labels.Everything()); err != nil || len(found) != 0 {
		t.Errorf("the lister gives %v and %v before a list, want nothing", found, err)
	}
}
