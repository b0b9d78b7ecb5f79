// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/consistencydetector"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

// guest is somebody's cache of one kind.
type guest struct {
	name     string
	resource schema.GroupResource
	versions func() map[string]string // names to resourceVersions
	seen     chan string              // versions of the mark, as they come
}

func newGuest(name string, r schema.GroupResource, versions func() map[string]string) *guest {
	return &guest{name, r, versions, make(chan string, 1000)}
}

// mark is an object that is written when all else is.
const mark = "mark"

func (g *guest) saw(m metav1.Object) {
	if m.GetName() == mark {
		g.seen <- m.GetResourceVersion()
	}
}

// await returns when the guest has seen a version of the mark.
func (g *guest) await(t *testing.T, version string) {
	t.Helper()
	for {
		select {
		case seen := <-g.seen:
			if seen == version {
				return
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s does not see what is written last of %s", g.name, g.resource)
		}
	}
}

// kinds that guests have: two with a protobuf form, and one without.
var (
	secrets = schema.GroupResource{Resource: "secrets"}
	kinds   = []schema.GroupResource{fixture.ConfigMaps, secrets, fixture.Widgets}
)

// ofClientGo is a guest that uses client-go's informer.
func ofClientGo(t *testing.T, r schema.GroupResource, i cache.SharedIndexInformer) *guest {
	g := newGuest("client-go", r, func() map[string]string {
		out := map[string]string{}
		for _, obj := range i.GetStore().List() {
			m := obj.(metav1.Object)
			out[m.GetName()] = m.GetResourceVersion()
		}
		return out
	})
	see := func(obj any) {
		if m, ok := obj.(metav1.Object); ok {
			g.saw(m)
		}
	}
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }}); err != nil {
		t.Fatal(err)
	}
	return g
}

// ofFlyball is a guest that uses flyball's informer.
func ofFlyball[T kube.Object](t *testing.T, r schema.GroupResource, i *informer.SharedInformer[T]) *guest {
	g := newGuest("flyball", r, func() map[string]string {
		out := map[string]string{}
		for obj := range i.Lister().All() {
			out[obj.GetName()] = obj.GetResourceVersion()
		}
		return out
	})
	if _, err := i.AddHandler(func(e kube.Event[T]) {
		if e.Type != kube.Deleted {
			g.saw(e.New)
		}
	}, informer.HandlerOptions{}); err != nil {
		t.Fatal(err)
	}
	return g
}

// client-go compares what a streaming list has given it with a list at the same
// version, and panics when they differ. It has nothing to say here, whatever is
// written meanwhile, and whenever it has to list anew.
func TestJudge_ConsistencyDetectorIsSilent_S1(t *testing.T) {
	defer consistencydetector.SetDataConsistencyDetectionForWatchListEnabledForTest(true)()
	l, _ := listening(t, simulate.ListenOptions{Options: simulate.Options{Kinds: []simulate.Kind{fixture.WidgetKind}, Namespaces: []string{"ns"}}})
	s := l.Server()
	draw := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		scribble(t, s, draw)
	}
	guests, run := judges(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	run(ctx, &running)
	for round := range 4 {
		for range 700 {
			scribble(t, s, draw)
		}
		for _, r := range kinds {
			s.CloseWatches(r)
		}
		for range 300 {
			scribble(t, s, draw)
		}
		if round%2 == 0 {
			s.RestartCache() // all have to list anew
		}
		versions := map[schema.GroupResource]string{}
		for _, r := range kinds {
			versions[r] = put(t, s, r, mark, round)
		}
		for _, g := range guests {
			g.await(t, versions[g.resource])
		}
		for _, g := range guests {
			want := map[string]string{}
			for _, obj := range s.Objects(g.resource) {
				want[obj.GetName()] = obj.GetResourceVersion()
			}
			if got := g.versions(); !maps.Equal(got, want) {
				t.Errorf("%s has %d of %s, the server %d, and they differ", g.name, len(got), g.resource, len(want))
			}
		}
	}
	compared := slices.DeleteFunc(s.Served(), func(r simulate.Served) bool { return !strings.Contains(r.Query, "resourceVersionMatch=Exact") })
	if len(compared) < 6 {
		t.Errorf("%d lists were compared, want each kind's, again and again: this test looks at nothing", len(compared))
	}
}

// judges are caches of both makes for each of three kinds, and what runs them.
func judges(t *testing.T, l *simulate.Loopback) (guests []*guest, run func(context.Context, *sync.WaitGroup)) {
	t.Helper()
	cfg := l.Config()
	cfg.QPS = -1
	theirs := informers.NewSharedInformerFactory(clientsOf(t, cfg), 0)
	client, err := dynamic.NewForConfigAndClient(cfg, clientOf(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	their := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	ours, err := informer.NewSharedInformerFactory(l.Config(), clientScheme(t), informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	guests = []*guest{
		ofClientGo(t, fixture.ConfigMaps, theirs.Core().V1().ConfigMaps().Informer()),
		ofClientGo(t, secrets, theirs.Core().V1().Secrets().Informer()),
		ofClientGo(t, fixture.Widgets, their.ForResource(fixture.WidgetKind.GroupVersion().WithResource("widgets")).Informer()),
		ofFlyball(t, fixture.ConfigMaps, informer.For[*corev1.ConfigMap](ours)),
		ofFlyball(t, secrets, informer.For[*corev1.Secret](ours)),
		ofFlyball(t, fixture.Widgets, informer.ForKind(ours, fixture.WidgetKind.GroupVersionKind)),
	}
	return guests, func(ctx context.Context, group *sync.WaitGroup) {
		theirs.Start(ctx.Done())
		their.Start(ctx.Done())
		group.Go(func() {
			if err := ours.Run(ctx); err != nil {
				t.Error(err)
			}
			theirs.Shutdown()
			their.Shutdown()
		})
	}
}

// scribble creates, changes or deletes something.
func scribble(t *testing.T, s *simulate.Server, draw *rand.Rand) {
	t.Helper()
	r := kinds[draw.IntN(3)]
	name := fmt.Sprintf("n%d", draw.IntN(60))
	if draw.IntN(4) == 0 {
		_ = s.Remove(r, types.NamespacedName{Namespace: "ns", Name: name}) // if it is there
		return
	}
	put(t, s, r, name, draw.IntN(1000))
}

// put returns the resourceVersion.
func put(t *testing.T, s *simulate.Server, r schema.GroupResource, name string, value int) string {
	t.Helper()
	var obj runtime.Object
	switch meta := (metav1.ObjectMeta{Namespace: "ns", Name: name}); r {
	case fixture.ConfigMaps:
		obj = &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"v": fmt.Sprint(value)}}
	case secrets:
		obj = &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"v": fmt.Sprint(value)}}
	default:
		obj = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "test.example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"namespace": "ns", "name": name}, "spec": map[string]any{"value": fmt.Sprint(value)},
		}}
	}
	version, err := s.Put(obj)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func clientScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}
