// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// inNamespace is a ConfigMap of a namespace, named after it.
func inNamespace(namespace, name string) *corev1.ConfigMap {
	cm := configMap(name, namespace)
	cm.Namespace = namespace
	return cm
}

func scopeOf(namespaces ...string) informer.Scope { return informer.Scope{Namespaces: namespaces} }

// diary writes down what a handler is told.
type diary struct {
	mu struct {
		sync.Mutex
		lines []string
	}
}

func (d *diary) handle(e kube.Event[cmap]) {
	line := e.Type.String() + " " + e.Key.String()
	if e.LeftScope {
		line += " left"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.lines = append(d.mu.lines, line)
}

func (d *diary) take() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.mu.lines
	d.mu.lines = nil
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

func notes(t *testing.T, d *diary, want, meaning string) {
	t.Helper()
	if got := d.take(); got != want {
		t.Errorf("told %q, want %q: %s", got, want, meaning)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func follow(t *testing.T, i *informer.SharedInformer[cmap], opts informer.HandlerOptions) (*diary, *informer.Registration) {
	t.Helper()
	d := &diary{}
	r, err := i.AddHandler(d.handle, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d, r
}

// scopesIn is what an informer watches, in short.
func scopesIn[T kube.Object](i *informer.SharedInformer[T]) string {
	var out []string
	for _, s := range i.Snapshot().Scopes {
		out = append(out, s.Scope.Namespace+s.Scope.LabelSelector)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestInformer_ReleasedScopeEndsAndTheOthersGoOn_I10(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(inNamespace("a", "x"), inNamespace("b", "x"), inNamespace("c", "x"))
		one := informer.For[cmap](w.factory, scopeOf("a", "b"))
		two := informer.For[cmap](w.factory, scopeOf("b", "c"))
		gone, _ := follow(t, one, informer.HandlerOptions{})
		stays, _ := follow(t, two, informer.HandlerOptions{})
		start(w)
		notes(t, gone, "added a/x, added b/x", "both of its namespaces")
		notes(t, stays, "added b/x, added c/x", "both of its namespaces")

		one.Release()
		one.Release()
		pass(time.Second)
		if got := scopesIn(two); got != "b c" {
			t.Errorf("watched after the release: %q, want only what the other handle holds: b c", got)
		}
		if got := two.Snapshot(); got.Objects != 2 || len(got.Handlers) != 1 || !got.Synced {
			t.Errorf("%d objects and %d handlers, synced %v, after the release, want 2 and 1: what only the released handle held is given back", got.Objects, len(got.Handlers), got.Synced)
		}
		w.Store(inNamespace("a", "y"), inNamespace("b", "y"))
		pass(time.Minute)
		notes(t, gone, "", "a released handle's handlers are removed")
		notes(t, stays, "added b/y", "another handle's handlers go on")
		if got := two.Snapshot().Objects; got != 3 {
			t.Errorf("%d objects, want 3: nothing of an ended scope comes back", got)
		}

		var released *kube.ReleasedError
		if _, err := one.Lister().Get(kube.Key{Namespace: "b", Name: "x"}); !errors.As(err, &released) {
			t.Errorf("Get through a released handle: %v, want a ReleasedError", err)
		}
		if n := len(slices.Collect(one.Lister().All())); n != 0 {
			t.Errorf("a released handle still shows %d objects", n)
		}
		if _, err := one.Lister().List(informer.QueryOptions{}); !errors.As(err, &released) {
			t.Errorf("List through a released handle: %v, want a ReleasedError", err)
		}
		_, adding := one.AddHandler(func(kube.Event[cmap]) {}, informer.HandlerOptions{})
		for what, err := range map[string]error{
			"AddHandler": adding,
			"AddIndex":   one.AddIndex("i", func(cmap) []string { return nil }),
			"SetScopes":  one.SetScopes(),
			"Err":        one.Err(),
		} {
			if !errors.As(err, &released) {
				t.Errorf("%s of a released handle: %v, want a ReleasedError", what, err)
			}
		}
		if !isClosed(one.Ended()) || isClosed(two.Ended()) {
			t.Error("the released handle must say that it has ended, and the other one must not")
		}
	})
}

// goroutines of the bubble that the caller is in. The runtime and tests that have
// ended have some of their own, which come and go.
func goroutines(t *testing.T) int {
	t.Helper()
	buf := make([]byte, 1<<20)
	mine := string(buf[:runtime.Stack(buf, false)])
	_, rest, in := strings.Cut(mine, "synctest bubble ")
	number, _, ends := strings.Cut(rest, "]")
	if !in || !ends {
		t.Fatalf("the stack of a goroutine in a bubble does not name it: %.80s", mine)
	}
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "synctest bubble "+number+"]:\n")
}

// The bubble proves in the end that no goroutine is left; here it is the server
// that sees no watch, while the factory runs on.
func TestInformer_LastReleaseEndsTheInformer_I10(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(inNamespace("a", "x"))
		w.Store(newWidget("w", "1"))
		widgets := informer.For[*widget](w.factory)
		start(w)
		pass(10 * time.Second) // the factory has asked what it asks once
		var obj weak.Pointer[corev1.ConfigMap]
		var i *informer.SharedInformer[cmap]
		for range 3 {
			before := goroutines(t)
			i = informer.For[cmap](w.factory, scopeOf("a"))
			d, r := follow(t, i, informer.HandlerOptions{Resync: time.Hour})
			pass(time.Second)
			notes(t, d, "added a/x", "an informer that is asked for anew lists anew")
			if !isClosed(r.Synced()) {
				t.Error("not synced")
			}
			cm, err := i.Lister().Get(kube.Key{Namespace: "a", Name: "x"})
			w.Must(err)
			obj = weak.Make(cm)
			if during := goroutines(t); during <= before {
				t.Errorf("%d goroutines with the informer, %d without: this test sees nothing", during, before)
			}
			i.Release()
			pass(time.Second)
			if n := len(w.factory.Snapshot()); n != 1 {
				t.Errorf("the factory knows %d informers after the last release, want 1", n)
			}
			if after := goroutines(t); after > before {
				t.Errorf("%d goroutines after the release, %d before: the informer has not given all back", after, before)
			}
		}
		runtime.GC()
		if obj.Value() != nil {
			t.Error("an object of a released informer is kept, though nothing but the released handle is held")
		}
		if err := i.Err(); err == nil {
			t.Error("the released handle does not say that it is")
		}
		holds(t, widgets, "w=1", "another kind is untouched")
	})
}

func TestInformer_ReleaseBeforeTheRunAndInAHandler_I10(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(inNamespace("a", "x"), inNamespace("a", "y"))
		early := informer.For[cmap](w.factory)
		early.Release()
		if n := len(w.factory.Snapshot()); n != 0 {
			t.Errorf("the factory knows %d informers, want none: the only one was released", n)
		}
		i := informer.For[cmap](w.factory)
		calls := 0
		_, err := i.AddHandler(func(kube.Event[cmap]) { calls++; i.Release() }, informer.HandlerOptions{})
		w.Must(err)
		start(w)
		if calls != 1 {
			t.Errorf("the handler was called %d times, want once: it releases its own handle", calls)
		}
		if got := w.asked("list", "/configmaps") + w.asked("watch", "/configmaps"); got > 1 {
			t.Errorf("%d requests, want one: the informer that was released before the run never asks", got)
		}
		if n := len(w.factory.Snapshot()); n != 0 {
			t.Errorf("the factory knows %d informers, want none", n)
		}
	})
}

func TestLister_ReadNeverStartsAnInformer(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		i := informer.For[cmap](w.factory)
		var notSynced *kube.NotSyncedError
		if _, err := i.Lister().Get(key("x")); !errors.As(err, &notSynced) {
			t.Errorf("Get before the run: %v, want a NotSyncedError", err)
		}
		pass(time.Minute)
		if n := len(w.Served()); n != 0 {
			t.Errorf("%d requests after a read, want none: only Run asks the server", n)
		}
		start(w)
		i.Release()
		pass(time.Minute)
		asked := len(w.Served())
		_, err := i.Lister().Get(key("x"))
		pass(time.Minute)
		if err == nil || len(w.Served()) != asked || len(w.factory.Snapshot()) != 0 {
			t.Errorf("a read of a released handle gave %v and led to %d requests", err, len(w.Served())-asked)
		}
	})
}

func TestInformer_ScopesChangeAtRunTime_I4(t *testing.T) {
	for _, every := range []bool{false, true} {
		t.Run(fmt.Sprintf("every event %v", every), func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				w.Store(inNamespace("a", "x"), inNamespace("b", "x"), inNamespace("c", "x"))
				i := informer.For[cmap](w.factory, scopeOf("a", "b"))
				other := informer.For[cmap](w.factory, scopeOf("c"))
				lister := i.Lister()
				d := &diary{}
				r, err := i.AddHandler(func(e kube.Event[cmap]) {
					_, err := lister.Get(e.Key)
					if (e.Type == kube.Deleted) != (err != nil) {
						t.Errorf("told of %s %s, but the store answers %v: it must change first", e.Type, e.Key, err)
					}
					d.handle(e)
				}, informer.HandlerOptions{EveryEvent: every})
				w.Must(err)
				start(w)
				notes(t, d, "added a/x, added b/x", "the first scopes")
				synced := i.Synced()

				w.Network.Delay(100 * time.Millisecond) // the new scope is not listed while we look
				w.Must(i.SetScopes(scopeOf("b", "c", "d")))
				var out *kube.OutOfScopeError
				if _, err := lister.Get(kube.Key{Namespace: "a", Name: "x"}); !errors.As(err, &out) {
					t.Errorf("Get in a namespace that is out: %v, want an OutOfScopeError at once", err)
				}
				if _, err := lister.Get(kube.Key{Namespace: "c", Name: "x"}); err != nil {
					t.Errorf("Get in a namespace that another handle watches: %v, want the object at once", err)
				}
				if i.Synced() == synced || isClosed(i.Synced()) || !isClosed(r.Synced()) {
					t.Error("scopes that are not listed yet need a Synced of their own; the handler's stays closed")
				}
				w.Network.Delay(0)
				w.Store(inNamespace("d", "x"))
				pass(time.Second)
				notes(t, d, "added c/x, added d/x, deleted a/x left", "what goes and what comes")
				if !isClosed(i.Synced()) {
					t.Error("not synced, though the new scope is listed")
				}

				other.Release()
				w.Store(inNamespace("a", "y"), inNamespace("c", "y"))
				pass(time.Second)
				notes(t, d, "added c/y", "a namespace that is out is not told of; one that is held twice lives until both let go")

				if err := i.SetScopes(informer.Scope{LabelSelector: "a==(("}); err == nil || !strings.Contains(err.Error(), "a==((") {
					t.Errorf("SetScopes with a selector that does not parse: %v, want an error that shows it", err)
				}
				if got := scopesIn(i); got != "b c d" {
					t.Errorf("watched after a mistake: %q, want what was: b c d", got)
				}
				w.Must(i.SetScopes(informer.Scope{}))
				pass(time.Second)
				notes(t, d, "added a/x, added a/y", "the whole covers what was there, which is not told again")
				if got := scopesIn(i); got != "" || len(i.Snapshot().Scopes) != 1 {
					t.Errorf("watched: %q, want the one scope of all namespaces", got)
				}
				w.Must(i.SetScopes(scopeOf("a", "b")))
				if n := len(slices.Collect(lister.All())); n != 3 {
					t.Errorf("%d objects are seen before the narrower scopes are listed, want the 3 that were known", n)
				}
				pass(time.Second)
				notes(t, d, "deleted c/x left, deleted c/y left, deleted d/x left", "narrower scopes tell of what goes alone")
			})
		})
	}
}

// Namespaces come and go for years: what the informer keeps follows those that
// there are.
func TestInformer_MemoryFollowsTheScopesThatThereAre_I10(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		all := informer.For[cmap](w.factory, informer.Scope{LabelSelector: "all"})
		i := informer.For[cmap](w.factory, scopeOf("first"))
		start(w)
		before := goroutines(t)
		for n := range 200 {
			ns := fmt.Sprintf("ns%d", n)
			w.Store(namespace(ns, ""), inNamespace(ns, "x"))
			w.Must(i.SetScopes(scopeOf(ns)))
			pass(time.Second)
			if got := held(i); got != "x="+ns {
				t.Fatalf("in %s: got %q, want its object alone: the number of a scope that has ended is used again, what it had is not", ns, got)
			}
		}
		pass(5 * time.Minute)
		if after := goroutines(t); after > before {
			t.Errorf("%d goroutines, %d with the first namespace: a scope that ends stops its Reflector", after, before)
		}
		if got := all.Snapshot(); len(got.Scopes) != 2 || got.Objects != 1 || got.Tombstones != 0 {
			t.Errorf("%d scopes, %d objects, %d tombstones, want 2, 1 and 0", len(got.Scopes), got.Objects, got.Tombstones)
		}
	})
}

func TestInformer_ClusterScopedKindIsWatchedOnce(t *testing.T) {
	simulated(t, informer.Options{Namespaces: []string{"a", "b", "c"}}, func(t *testing.T, w *world) {
		w.Store(&corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		nodes := informer.For[*corev1.Node](w.factory)
		start(w)
		if !isClosed(nodes.Synced()) {
			t.Fatalf("not synced: %v", stateOf(nodes))
		}
		if n := w.streams(schema.GroupResource{Resource: "nodes"}); n != 1 {
			t.Errorf("%d streaming lists of Nodes, want 1: namespaces do not divide them", n)
		}
		if got := nodes.Snapshot(); len(got.Scopes) != 1 || got.Objects != 1 {
			t.Errorf("%d scopes with %d objects, want 1 and 1", len(got.Scopes), got.Objects)
		}
		if _, err := nodes.Lister().Get(kube.Key{Name: "n"}); err != nil {
			t.Errorf("Get: %v", err)
		}
	})
}

// namespace is a Namespace with a label, or none.
func namespace(name, team string) *corev1.Namespace {
	ns := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	if team != "" {
		ns.Labels = map[string]string{"team": team}
	}
	return ns
}

var Namespaces = schema.GroupResource{Resource: "namespaces"}

func TestInformer_NamespacesChosenByLabelAreFollowed(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(namespace("a", "red"), namespace("b", "blue"), inNamespace("a", "x"), inNamespace("b", "x"), inNamespace("c", "x"))
		i := informer.For[cmap](w.factory, informer.Scope{NamespaceSelector: "team=red"})
		d, _ := follow(t, i, informer.HandlerOptions{})
		if isClosed(i.Synced()) {
			t.Error("synced before the namespaces are known")
		}
		start(w)
		if !isClosed(i.Synced()) || !i.Snapshot().Synced {
			t.Errorf("not synced: %v", i.Snapshot().Scopes)
		}
		notes(t, d, "added a/x", "the namespaces that match")
		w.Store(namespace("c", "red"))
		pass(time.Second)
		notes(t, d, "added c/x", "a namespace that comes")
		w.Store(namespace("a", "blue"), namespace("b", "red"))
		pass(time.Second)
		notes(t, d, "added b/x, deleted a/x left", "labels that change")
		w.Must(w.Remove(Namespaces, kube.Key{Name: "c"}))
		pass(time.Second)
		notes(t, d, "deleted c/x left", "a namespace that goes")
		w.Must(w.Remove(Namespaces, kube.Key{Name: "b"}))
		pass(time.Second)
		notes(t, d, "deleted b/x left", "no namespace at all is not every namespace")
		if n := len(slices.Collect(i.Lister().All())); n != 0 {
			t.Errorf("%d objects are seen in no namespace", n)
		}
		w.Must(i.SetScopes(informer.Scope{NamespaceSelector: "team=blue"}))
		pass(time.Second)
		notes(t, d, "added a/x", "another selector")
		i.Release()
		pass(time.Second)
		if n := len(w.factory.Snapshot()); n != 0 {
			t.Errorf("the factory knows %d informers after the release, want none: that of the namespaces goes too", n)
		}
	})
}

func TestInformer_NamespacesThatCannotBeListedAreAState_I9(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(namespace("a", "red"), inNamespace("a", "x"))
		w.Deny("list", Namespaces)
		w.Deny("watch", Namespaces)
		i := informer.For[cmap](w.factory, informer.Scope{NamespaceSelector: "team=red"})
		nodes := informer.For[*corev1.Node](w.factory, informer.Scope{NamespaceSelector: "team=red"}, scopeOf("a"))
		start(w)
		current := stateOf(i)
		if isClosed(i.Synced()) || current.State != state.Forbidden || !strings.Contains(current.String(), `namespaces with labels "team=red"`) || !strings.Contains(current.Reason, "namespaces") {
			t.Errorf("state %v, want Forbidden with the server's words", current)
		}
		w.Allow("list", Namespaces)
		w.Allow("watch", Namespaces)
		pass(10 * time.Minute)
		holds(t, i, "x=a", "it heals with the right")
		if current := stateOf(nodes); current.State != state.Misuse || isClosed(nodes.Synced()) || !strings.Contains(current.Reason, "cluster scope") {
			t.Errorf("state of a kind of cluster scope: %v, want Misuse", current)
		}
		bounded, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := nodes.WaitForSync(bounded); err == nil || bounded.Err() != nil || !strings.Contains(err.Error(), "cluster scope") {
			t.Errorf("the wait for sync of a kind of cluster scope ends with %v, want at once and with the reason", err)
		}
	})
}

func TestInformer_MisuseOfNamespaceSelectors(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		i := informer.For[cmap](w.factory, scopeOf("a"))
		for text, scope := range map[string]informer.Scope{
			"a==((":            {NamespaceSelector: "a==(("},
			"give one of both": {NamespaceSelector: "a=b", Namespaces: []string{"a"}},
		} {
			if err := i.SetScopes(scope); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("SetScopes of %+v: %v, want %q", scope, err, text)
			}
		}
		if n := len(w.factory.Snapshot()); n != 1 {
			t.Errorf("%d informers after misuse, want the one", n)
		}
	})
}
