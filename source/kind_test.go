// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/ownevents"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/source/sourcetest"
)

// collector receives what a source adds.
type collector struct {
	mu struct {
		sync.Mutex
		keys   []string
		causes []source.Cause
	}
}

func (c *collector) addKey(key source.Key, cause source.Cause) { c.add(key.Name, cause) }

func (c *collector) add(key string, cause source.Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.keys = append(c.mu.keys, key)
	c.mu.causes = append(c.mu.causes, cause)
}

// take returns the keys added since the last take, separated by spaces, and the
// last cause.
func (c *collector) take() (string, source.Cause) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var last source.Cause
	if n := len(c.mu.causes); n > 0 {
		last = c.mu.causes[n-1]
	}
	keys := strings.Join(c.mu.keys, " ")
	c.mu.keys, c.mu.causes = nil, nil
	return keys, last
}

// follow runs s until the end of the test.
func follow[K comparable](t *testing.T, s source.Source[K], add func(K, source.Cause)) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, add) }()
	synctest.Wait()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

func label(value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Labels = map[string]string{"for": value} }
}

func generation(n int64) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Generation = n }
}

func labelKeys(d *appsv1.Deployment) []string {
	if d.Labels["for"] == "panic" {
		panic("mapper")
	}
	return strings.Fields(d.Labels["for"])
}

func TestKind_AddsTheKeyOfEachEvent_R1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c collector
		s := newServer()
		s.Write(deployment("a"))
		i := newInformer(t, s)
		kind := source.Kind(i, source.Self)
		stop := follow(t, kind, c.addKey)
		if kind.Snapshot().Synced {
			t.Error("synced before the informer has listed anything")
		}
		run(t, i)
		key := source.Key{Namespace: "prod", Name: "a"}
		for _, step := range []struct {
			do   func()
			want source.Cause
		}{
			{func() {}, source.Cause{Type: kube.Added, Initial: true, Generation: 1}},
			{func() { s.Write(deployment("a", generation(2))) }, source.Cause{Type: kube.Updated, OldGeneration: 1, Generation: 2}},
			{func() { s.Delete(kube.Key{Namespace: "prod", Name: "a"}) }, source.Cause{Type: kube.Deleted, OldGeneration: 2}},
			{func() { s.Write(deployment("a", generation(3))) }, source.Cause{Type: kube.Added, Generation: 3}},
		} {
			step.do()
			step.want.Source, step.want.Kind, step.want.Object = "kind Deployment", i.Kind().GroupKind(), key
			keys, cause := c.take()
			if has := cause.OldVersion > 0; has != (cause.Type != kube.Added) || cause.Type != kube.Deleted && cause.Version <= cause.OldVersion {
				t.Errorf("%s: the versions are %d and %d", cause, cause.OldVersion, cause.Version)
			}
			step.want.OldVersion, step.want.Version = cause.OldVersion, cause.Version
			if keys != "a" || cause != step.want {
				t.Errorf("added %q because of %#v, want a because of %#v", keys, cause, step.want)
			}
		}
		if !kind.Snapshot().Synced {
			t.Error("not synced though the keys of the list have been added")
		}
		if err := stop(); err != nil {
			t.Errorf("Run returned %v, want nil: ctx ended it", err)
		}
		s.Write(deployment("b"))
		if keys, _ := c.take(); keys != "" {
			t.Errorf("added %q after the end", keys)
		}
		if got := i.Snapshot().Handlers; len(got) != 0 {
			t.Errorf("the informer still has handlers %+v; a source removes its own", got)
		}
	})
}

func TestKind_AddsTheKeysOfOldAndNew_R1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c collector
		s := newServer()
		follow(t, source.Mapped(watch(t, s), labelKeys), c.add)
		for _, step := range []struct {
			do   func()
			want string
		}{
			{func() { s.Write(deployment("d", label("a b b"))) }, "a b"},
			{func() { s.Write(deployment("d", label("b c"))) }, "a b c"},
			{func() { s.Write(deployment("d")) }, "b c"},
			{func() { s.Write(deployment("d", label("e"))) }, "e"},
			{func() { s.Delete(kube.Key{Namespace: "prod", Name: "d"}) }, "e"},
		} {
			step.do()
			if keys, _ := c.take(); keys != step.want {
				t.Errorf("added %q, want %q: those of the old and of the new state, each once", keys, step.want)
			}
		}
	})
}

func TestKind_PredicatesDropOnlyWhatTheyMay_R1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c collector
		s := newServer()
		kind := source.Kind(watch(t, s), source.Self, source.SpecChanged)
		follow(t, kind, c.addKey)
		withFinalizer := func(d *appsv1.Deployment) { d.Finalizers = []string{"x/y"} }
		for _, step := range []struct {
			name string
			do   func()
			want string
		}{
			{"added", func() { s.Write(deployment("a")) }, "a"},
			{"labels", func() { s.Write(deployment("a", label("x"))) }, ""},
			{"spec", func() { s.Write(deployment("a", label("x"), generation(2))) }, "a"},
			{"finalizer", func() { s.Write(deployment("a", generation(2), withFinalizer)) }, "a"},
			{"deleted", func() { s.Delete(kube.Key{Namespace: "prod", Name: "a"}) }, "a"},
		} {
			step.do()
			if keys, _ := c.take(); keys != step.want {
				t.Errorf("%s: added %q, want %q", step.name, keys, step.want)
			}
		}
		if got := kind.Snapshot(); got.Events != 5 || got.Dropped != 1 || got.Keys != 4 {
			t.Errorf("Snapshot %+v, want 5 events, 1 dropped, 4 keys", got)
		}
	})
}

// A mapper may be slow, or rely on the predicate; also where own events are told from others'.
func TestKind_DoesNotMapWhatAPredicateDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var mapped []string
		kind := source.Kind(watch(t, s), func(obj kube.Object) iter.Seq[source.Key] {
			mapped = append(mapped, obj.GetName())
			return source.Self(obj)
		}, source.When(func(e kube.Event[kube.Object]) bool { return e.Latest().GetName() == "ours" }))
		ctx, cancel := context.WithCancel(ownevents.WithFilter(t.Context(), ownevents.Filter[source.Key]{Ledger: new(ownevents.Ledger[source.Key])}))
		ended := make(chan error, 1)
		go func() { ended <- kind.Run(ctx, func(source.Key, source.Cause) {}) }()
		for _, name := range []string{"a", "ours", "b"} {
			s.Write(deployment(name))
		}
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil || !slices.Equal(mapped, []string{"ours"}) {
			t.Errorf("%v; mapped %q, want ours alone", err, mapped)
		}
	})
}

func TestOwned_AddsTheOldAndTheNewOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c collector
		s := newServer()
		i := watch(t, s)
		yes := true
		owned := func(by string) func(*appsv1.Deployment) {
			return func(d *appsv1.Deployment) {
				d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: by, Controller: &yes}}
			}
		}
		// An informer made by New has no discovery: both possible keys of an
		// owner are added.
		follow(t, source.Owned(i, i, source.SpecChanged), c.addKey)
		s.Write(deployment("d", owned("old")))
		if keys, _ := c.take(); !strings.Contains(keys, "old") {
			t.Errorf("added %q, want the owner", keys)
		}
		s.Write(deployment("d", owned("new"))) // no change of spec
		if keys, _ := c.take(); !strings.Contains(keys, "old") || !strings.Contains(keys, "new") {
			t.Errorf("added %q, want the owner that lost it and the one that got it", keys)
		}
	})
}

func TestKind_PanicsHarmOnlyTheirOwnKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c collector
		s := newServer()
		angry := source.When(func(e kube.Event[kube.Object]) bool {
			if e.Latest().GetName() == "predicate" {
				panic("predicate")
			}
			return true
		})
		kind := source.Mapped(watch(t, s), labelKeys, angry)
		follow(t, kind, c.add)
		for _, step := range []struct {
			do   func()
			want string
		}{
			{func() { s.Write(deployment("d", label("a"))) }, "a"},
			{func() { s.Write(deployment("d", label("panic"))) }, "a"}, // the old state's key is not lost
			{func() { s.Write(deployment("d", label("b"))) }, "b"},
			{func() { s.Write(deployment("predicate", label("c"))) }, "c"}, // passes
			{func() { s.Write(deployment("e", label("d"))) }, "d"},
		} {
			step.do()
			if keys, _ := c.take(); keys != step.want {
				t.Errorf("added %q, want %q", keys, step.want)
			}
		}
		if got := kind.Snapshot().Panics; got != 3 {
			t.Errorf("%d panics counted, want 3: new state, old state, predicate", got)
		}
	})
}

func TestKind_EndWaitsForTheEventInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		release := make(chan struct{})
		added := 0
		stop := follow(t, source.Kind(watch(t, s), func(obj kube.Object) iter.Seq[source.Key] {
			<-release
			return source.Self(obj)
		}), func(source.Key, source.Cause) { added++ })
		s.Write(deployment("a"))
		synctest.Wait()
		ended := make(chan struct{})
		go func() {
			_ = stop()
			close(ended)
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("Run returned while its mapper was at work")
		default:
		}
		close(release)
		<-ended
		if added != 1 {
			t.Errorf("%d keys added by the event in hand, want 1", added)
		}
	})
}

func TestKind_KeepsTheContract(t *testing.T) {
	sourcetest.Run(t, func() source.Source[source.Key] {
		s := newServer()
		s.Write(deployment("a"))
		i := newInformer(t, s)
		return running{source.Kind(i, source.Self), i}
	})
}

// running is a source that also runs its informer.
type running struct {
	source.Source[source.Key]
	informer *informer.SharedInformer[*appsv1.Deployment]
}

func (r running) Run(ctx context.Context, add func(source.Key, source.Cause)) error {
	var informers sync.WaitGroup
	defer informers.Wait()
	informers.Go(func() { _ = r.informer.Run(ctx) })
	return r.Source.Run(ctx, add)
}

func TestKind_MisuseIsRememberedAndReturnedByRun(t *testing.T) {
	i := newInformer(t, newServer())
	var none *informer.SharedInformer[*appsv1.Deployment]
	for name, tc := range map[string]struct {
		s    source.Source[source.Key]
		want string
	}{
		"nil informer":  {source.Kind(none, source.Self), "the informer is nil"},
		"nil mapper":    {source.Kind[*appsv1.Deployment, source.Key](i, nil), "the mapper is nil"},
		"nil children":  {source.Owned(none, i), "the informer is nil"},
		"nil owners":    {source.Owned(i, none), "the informer of the owners is nil"},
		"nil any owner": {source.OwnedByAny(i, none), "the informer of the owners is nil"},
		"nil function":  {source.Mapped[*appsv1.Deployment, source.Key](i, nil), "the mapping function is nil"},
		"nil predicate": {source.Kind(i, source.Self, nil), "a predicate is nil"},
		"wrong type":    {source.Kind(i, source.Self, source.Where(func(*appsv1.StatefulSet) bool { return true })), "is for *v1.StatefulSet"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := source.ErrOf(tc.s); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("ErrOf is %v, want %q in it", err, tc.want)
			}
			if err := tc.s.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Run returned %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestKind_ManyKeysOfOneEventAreAddedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c collector
		s := newServer()
		var all []string
		for n := range 100 {
			all = append(all, fmt.Sprintf("k%d", n))
		}
		follow(t, source.Mapped(watch(t, s), func(*appsv1.Deployment) []string { return all }), c.add)
		s.Write(deployment("d"))
		c.take()
		s.Write(deployment("d", generation(2)))
		if keys, _ := c.take(); !slices.Equal(strings.Fields(keys), all) {
			t.Errorf("added %d keys for an update, want each of the 100 once", len(strings.Fields(keys)))
		}
	})
}

// A released informer delivers nothing any more: a wait for its sync fails, and
// a synced source ends.
func TestKind_EndsWithTheHandleOfItsInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c collector
		i := newInformer(t, newServer())
		before := source.Kind(i, source.Self)
		ended := make(chan error, 2)
		go func() { ended <- before.Run(t.Context(), c.addKey) }()
		synctest.Wait()
		i.Release()
		var released *kube.ReleasedError
		if err := <-ended; !errors.As(err, &released) {
			t.Errorf("Run of a source that waits for sync: %v, want a ReleasedError: nobody would ever hear of it", err)
		}

		i = newInformer(t, newServer())
		run(t, i)
		after := source.Kind(i, source.Self)
		go func() { ended <- after.Run(t.Context(), c.addKey) }()
		<-after.Synced()
		i.Release()
		if err := <-ended; err != nil {
			t.Errorf("Run of a source that was synced: %v, want nil", err)
		}
	})
}
