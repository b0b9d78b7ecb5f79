// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/internal/delivery"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// factoryOn returns a factory for s, and the number of its open connections.
func factoryOn(t *testing.T, s *fixture.Server, opts Options) (*SharedInformerFactory, *atomic.Int64) {
	t.Helper()
	open := &atomic.Int64{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := s.Dial(ctx, network, address)
		if err == nil {
			open.Add(1)
			c = &countedConn{Conn: c, closed: sync.OnceFunc(func() { open.Add(-1) })}
		}
		return c, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	// The user agent makes client-go wrap the transport.
	f, err := NewSharedInformerFactory(&rest.Config{Host: "http://memory", Transport: transport, UserAgent: "test"}, clientscheme.Scheme, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f, open
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// runFactory runs f until stop is called.
func runFactory(t *testing.T, f *SharedInformerFactory) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Errorf("Run ended with %v, want nil when its context ends", err)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func TestFactory_EndGivesIdleConnectionsBack_I10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, open := factoryOn(t, fixture.Serve(t, fixture.Body(500, "text/plain", "boom")), Options{})
		For[*corev1.ConfigMap](f)
		stop := runFactory(t, f)
		synctest.Wait() // the reflector pauses, its connection is idle
		if got := open.Load(); got != 1 {
			t.Fatalf("%d connections are open during the run, want 1", got)
		}
		stop()
		synctest.Wait()
		if got := open.Load(); got != 0 {
			t.Errorf("%d connections are open after the end, want none", got)
		}
	})
}

func TestFactory_InformerAskedForAfterTheEndIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := factoryOn(t, fixture.Serve(t, fixture.Watch(fixture.Hang, fixture.WireBookmark(t, "10", true))), Options{})
		For[*corev1.ConfigMap](f)
		stop := runFactory(t, f)
		synctest.Wait()
		stop()
		for name, i := range map[string]interface{ Snapshot() state.Informer }{
			"of a kind that ran": For[*corev1.ConfigMap](f, Scope{Namespaces: []string{"late"}}),
			"of a new kind":      For[*corev1.Node](f),
		} {
			for _, s := range i.Snapshot().Scopes {
				if s.State != state.Stopped {
					t.Errorf("scope %s: want Stopped, since nothing will ever feed it", s)
				}
			}
			if len(i.Snapshot().Scopes) == 0 {
				t.Errorf("informer %s shows no scope", name)
			}
		}
		late := For[*corev1.Node](f)
		if err := late.Err(); err != nil {
			t.Errorf("Err = %v, want nil: to be late is not misuse", err)
		}
		if _, err := late.AddHandler(func(kube.Event[*corev1.Node]) {}, HandlerOptions{}); err == nil || !strings.Contains(err.Error(), "ended") {
			t.Errorf("AddHandler: %v, want an error that says the run has ended: the handler would never be called", err)
		}
	})
}

func TestFactory_MisuseDuringTheRunCostsItsOwnHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := factoryOn(t, fixture.Serve(t, fixture.Watch(fixture.Hang, fixture.WireBookmark(t, "10", true))), Options{})
		first := For[*corev1.ConfigMap](f)
		stop := runFactory(t, f)
		defer stop()
		<-first.Synced()
		for range 2 {
			if bad := For[*corev1.ConfigMap](f, Scope{LabelSelector: "a==(("}); bad.Err() == nil || isClosed(bad.Synced()) {
				t.Errorf("a handle with a malformed selector has error %v, synced %v; want an error each time, and no sync", bad.Err(), isClosed(bad.Synced()))
			}
		}
		good := For[*corev1.ConfigMap](f, Scope{LabelSelector: "a=b"})
		if err := good.Err(); err != nil {
			t.Errorf("another handle has the error %v", err)
		}
		states, err := f.WaitForSync(t.Context())
		if err != nil || len(states) != 1 || !states[0].Synced {
			t.Errorf("WaitForSync: %+v, %v; want all that can sync", states, err)
		}
	})
}

func TestFactory_MisuseBeforeTheRunIsReturned(t *testing.T) {
	f, _ := factoryOn(t, nil, Options{})
	For[*corev1.ConfigMap](f, Scope{LabelSelector: "a==(("})
	_, waited := f.WaitForSync(t.Context())
	for name, err := range map[string]error{"WaitForSync": waited, "Run": f.Run(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), `"a==(("`) {
			t.Errorf("%s: %v, want the misuse", name, err)
		}
	}
}

// A list of namespaces, as from a command-line flag, does not limit Nodes.
func TestFactory_ClusterScopedKindInAFactoryOfNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := func(version string) *corev1.Node {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: version}}
		}
		added, end := node("5"), node("10")
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		for _, n := range []*corev1.Node{added, end} {
			n.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
		}
		f, _ := factoryOn(t, fixture.Serve(t, fixture.Watch(fixture.Hang, fixture.Wire(t, listwatch.FrameAdded, added), fixture.Wire(t, listwatch.FrameBookmark, end))), Options{Namespaces: []string{"a", "b"}})
		nodes := For[*corev1.Node](f)
		stop := runFactory(t, f)
		defer stop()
		<-nodes.Synced()
		if _, err := nodes.Lister().Get(kube.Key{Name: "n"}); err != nil {
			t.Errorf("Get: %v", err)
		}
		if _, err := nodes.Lister().Get(kube.Key{Name: "none"}); !apierrors.IsNotFound(err) {
			t.Errorf("Get of a node that is not there: %v, want NotFound", err)
		}
		f.Observe(kube.Written{Kind: nodes.Kind(), Effect: kube.Stored, Key: kube.Key{Name: "n"}, UID: "u", Version: 11, Object: node("11")})
		got, err := nodes.Lister().Get(kube.Key{Name: "n"})
		if err != nil || got.ResourceVersion != "11" {
			t.Fatalf("after an own write Get gives %v and %v, want version 11", got, err)
		}
		if got.Kind != "Node" || got.APIVersion != "v1" {
			t.Errorf("the own write is held as %q of %q, want its kind set, as on what the watch brings", got.Kind, got.APIVersion)
		}
	})
}

// Only the server converts between the versions of a kind.
func TestFactory_OwnWriteOfAnotherVersionOfTheKind(t *testing.T) {
	f, _ := factoryOn(t, nil, Options{})
	v1, v1beta2 := For[*appsv1.Deployment](f), For[*appsv1beta2.Deployment](f)
	key := kube.Key{Namespace: "prod", Name: "d"}
	meta := func(version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "prod", Name: "d", UID: "u", ResourceVersion: version}
	}
	write := func(kind interface{ Snapshot() state.Informer }, obj kube.Object) {
		f.Observe(kube.Written{Kind: kind.Snapshot().Kind, Effect: kube.Stored, Key: key, UID: "u", Version: kube.ParseVersion(obj.GetResourceVersion()), Object: obj})
	}
	write(v1, &appsv1.Deployment{ObjectMeta: meta("5")})
	if _, err := v1.Lister().Get(key); err != nil {
		t.Errorf("Get of the version that was written: %v", err)
	}
	if got, err := v1beta2.Lister().Get(key); err == nil {
		t.Errorf("Get of another version gives %v, want none: fields may have other meanings there", got)
	}
	write(v1beta2, &appsv1beta2.Deployment{ObjectMeta: meta("5")})

	passed := 0
	stop := f.WhenPassed(v1.Kind(), key, 5, func() { passed++ })
	defer stop()
	write(v1, &appsv1.Deployment{ObjectMeta: meta("6")})
	if passed != 0 {
		t.Error("WhenPassed was told while one informer of the kind still holds the version")
	}
	write(v1beta2, &appsv1beta2.Deployment{ObjectMeta: meta("6")})
	if passed != 1 {
		t.Errorf("WhenPassed was told %d times, want once", passed)
	}
	f.WhenPassed(v1.Kind(), key, 6, func() { t.Error("told after stop") })()
	write(v1, &appsv1.Deployment{ObjectMeta: meta("7")})
	write(v1beta2, &appsv1beta2.Deployment{ObjectMeta: meta("7")})
}

func TestFactory_ScopesThatAnotherCoversAreNotWatched(t *testing.T) {
	for _, c := range []struct {
		scopes []Scope
		want   []listwatch.Scope
	}{
		{nil, nil},
		{[]Scope{{}, {Namespaces: []string{"a"}}}, []listwatch.Scope{{}}},
		{[]Scope{{Namespaces: []string{"b", "a", "b"}}, {Namespaces: []string{"a"}}}, []listwatch.Scope{{Namespace: "a"}, {Namespace: "b"}}},
		{[]Scope{{LabelSelector: "x"}, {Namespaces: []string{"a"}}}, []listwatch.Scope{{LabelSelector: "x"}, {Namespace: "a"}}},
	} {
		if got := watchScopesOf(c.scopes, false); !slices.Equal(got, c.want) {
			t.Errorf("%v is watched as %v, want %v", c.scopes, got, c.want)
		}
	}
}

// A transport asks which resources are watched, before and after discovery has answered.
func TestFactory_WatchedKindsAreKnownByResource_R14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := factoryOn(t, fixture.Serve(t, fixture.Watch(fixture.Hang, fixture.WireBookmark(t, "10", true))), Options{})
		maps, policies := For[*corev1.ConfigMap](f), ForKind(f, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Policy"})
		defer policies.Release()
		check := func(when string, want map[schema.GroupVersionResource]string) {
			t.Helper()
			for resource, kind := range want {
				got, watched := f.WatchedKind(resource)
				if watched != (kind != "") || watched && got != resource.GroupVersion().WithKind(kind) {
					t.Errorf("%s: %v is watched as %v, %v, want %q", when, resource, got, watched, kind)
				}
			}
		}
		core := corev1.SchemeGroupVersion.WithResource
		example := schema.GroupVersion{Group: "example.com", Version: "v2"}.WithResource
		check("before discovery", map[schema.GroupVersionResource]string{
			core("configmaps"): "ConfigMap", example("policies"): "Policy",
			core("secrets"): "", example("configmaps"): "", core("policies"): "", example("policys"): "",
		})
		stop := runFactory(t, f)
		defer stop()
		<-maps.Synced()
		synctest.Wait() // no other goroutine allocates
		check("after discovery", map[schema.GroupVersionResource]string{core("configmaps"): "ConfigMap", core("nodes"): ""})
		if n := testing.AllocsPerRun(100, func() { f.WatchedKind(core("configmaps")); f.WatchedKind(core("nodes")) }); n != 0 {
			t.Errorf("a question allocates %v times, want none", n)
		}
		maps.Release()
		check("after the last handle", map[schema.GroupVersionResource]string{core("configmaps"): ""})
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestRegistration_IsLeftOnce(t *testing.T) {
	left := 0
	r := newRegistration(delivery.New(func(kube.Event[kube.Object]) {}, delivery.Options{}, nil), func() { left++ })
	r.Remove()
	if r.Remove(); left != 1 {
		t.Errorf("left %d times, want once", left)
	}
}
