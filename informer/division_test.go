// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
)

// seen is what a handler has been told.
type seen[T kube.Object] struct {
	mu      sync.Mutex
	objects map[kube.Key]string // version
	left    int
	events  int
}

func watchAll[T kube.Object](t *testing.T, i *SharedInformer[T]) *seen[T] {
	t.Helper()
	s := &seen[T]{objects: map[kube.Key]string{}}
	_, err := i.AddHandler(func(e kube.Event[T]) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events++
		if e.Type == kube.Deleted {
			delete(s.objects, e.Key)
			if e.LeftScope {
				s.left++
			}
			return
		}
		s.objects[e.Key] = e.New.GetResourceVersion()
	}, HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *seen[T]) counts() (events, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events, s.left
}

// valueOf returns what decides the shard of an object.
func valueOf(by shards.By, o kube.Object) string {
	switch owner := metav1.GetControllerOfNoCopy(o); {
	case by == shards.Namespace:
		return o.GetNamespace()
	case by == shards.Owner && owner != nil:
		return string(owner.UID)
	}
	return string(o.GetUID())
}

// check compares the store and what a handler has been told with the server.
func (s *yard) check(t *testing.T, l Lister[*corev1.ConfigMap], told *seen[*corev1.ConfigMap], by shards.By, count int, held []int) {
	t.Helper()
	want := map[kube.Key]string{}
	for key, o := range s.all() {
		if slices.Contains(held, shards.Of(valueOf(by, o), count)) {
			want[key] = o.ResourceVersion
		}
	}
	has := map[kube.Key]string{}
	for o := range l.All() {
		has[kube.KeyOf(o)] = o.ResourceVersion
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	if fmt.Sprint(has) != fmt.Sprint(want) {
		t.Errorf("shards %v of %d by %s: the cache has\n%v, want\n%v", held, count, by, has, want)
	}
	if fmt.Sprint(told.objects) != fmt.Sprint(want) {
		t.Errorf("shards %v of %d by %s: the handler knows\n%v, want\n%v", held, count, by, told.objects, want)
	}
}

func everyKind(by shards.By) func(schema.GroupKind) string {
	return func(schema.GroupKind) string { return string(by) }
}

func formOf(f *SharedInformerFactory) state.Form { return f.Snapshot()[0].Division.Form }

func awaitWithin(t *testing.T, f *SharedInformerFactory, some ...int) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return f.AwaitShards(ctx, some...)
}

func hold(t *testing.T, f *SharedInformerFactory, some ...int) {
	t.Helper()
	if err := f.HoldShards(some...); err != nil {
		t.Fatal(err)
	}
	if err := awaitWithin(t, f, some...); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// dividedYard returns a server with objects, and a factory that divides them.
func dividedYard(t *testing.T, count int, by shards.By, opts Options) (*yard, *SharedInformerFactory, *SharedInformer[*corev1.ConfigMap], *seen[*corev1.ConfigMap]) {
	t.Helper()
	s := newYard(t)
	for i := range 40 {
		s.put(kube.Key{Namespace: fmt.Sprint("ns-", i%7), Name: fmt.Sprint("object-", i)}, "")
	}
	f, _ := factoryOn(t, s.Server, opts)
	early := For[*corev1.ConfigMap](f) // before it is known that it is divided
	if err := f.Divide(count, everyKind(by)); err != nil {
		t.Fatal(err)
	}
	return s, f, early, watchAll(t, early)
}

func TestDivision_EachGainedShardIsListedAloneIfTheServerSelects_I14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, maps, told := dividedYard(t, 8, shards.UID, Options{})
		stop := runFactory(t, f)
		synctest.Wait()
		if lists := s.begunLists(); len(lists) != 0 {
			t.Errorf("without a shard the server was asked for %q", lists)
		}
		if states, err := f.WaitForSync(t.Context()); err != nil || !states[0].Synced {
			t.Errorf("an informer without a shard has not synced: %v", err)
		}
		hold(t, f, 0, 1)
		if lists := s.begunLists(); len(lists) != 3 || lists[0] != "probe" || lists[1] == "" || lists[2] == "" {
			t.Errorf("the lists of two shards are %q, want a question and one of each", lists)
		}
		s.check(t, maps.Lister(), told, shards.UID, 8, []int{0, 1})
		_, before := told.counts()
		hold(t, f, 1, 2)
		if lists := s.begunLists(); len(lists) != 1 || lists[0] == "probe" {
			t.Errorf("the lists of another shard are %q, want its own", lists)
		}
		s.check(t, maps.Lister(), told, shards.UID, 8, []int{1, 2})
		if _, after := told.counts(); after == before {
			t.Error("no object has left with the lost shard")
		}
		hold(t, f, 1)
		if lists := s.begunLists(); len(lists) != 0 {
			t.Errorf("a lost shard led to the lists %q", lists)
		}
		for i := range 40 {
			s.put(kube.Key{Namespace: "ns", Name: fmt.Sprint("later-", i)}, "")
		}
		synctest.Wait()
		s.check(t, maps.Lister(), told, shards.UID, 8, []int{1})
		hold(t, f)
		s.check(t, maps.Lister(), told, shards.UID, 8, nil)
		division := f.Snapshot()[0].Division
		if division.Form != state.FormServer || division.Foreign != 0 || s.watching() != 0 {
			t.Errorf("the division is %+v with %d watches, want the server's form and none", division, s.watching())
		}
		stop()
	})
}

func (s *yard) watching() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.watches
}

func TestDivision_AServerThatDoesNotSelectIsListedOncePerChange_I14(t *testing.T) {
	for _, by := range []shards.By{shards.UID, shards.Namespace, shards.Owner} {
		for _, opts := range []Options{{}, {PagedLists: true, PageSize: 3}} {
			t.Run(fmt.Sprint(by, opts.PagedLists), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, f, maps, told := dividedYard(t, 8, by, opts)
					s.json = opts.PagedLists
					s.switchGate(by == shards.Owner)
					stop := runFactory(t, f)
					hold(t, f, 0, 1, 2)
					s.check(t, maps.Lister(), told, by, 8, []int{0, 1, 2})
					s.begunLists()
					hold(t, f, 1, 2, 3, 5)
					lists := slices.DeleteFunc(s.begunLists(), func(list string) bool { return list == "probe" })
					if first := slices.Compact(lists); len(first) != 1 || first[0] != "" || !opts.PagedLists && len(lists) != 1 {
						t.Errorf("the lists of a change are %q, want one of all", lists)
					}
					s.check(t, maps.Lister(), told, by, 8, []int{1, 2, 3, 5})
					for i := range 40 {
						s.put(kube.Key{Namespace: fmt.Sprint("ns-", i%7), Name: fmt.Sprint("object-", i)}, "")
					}
					synctest.Wait()
					s.check(t, maps.Lister(), told, by, 8, []int{1, 2, 3, 5})
					hold(t, f)
					s.check(t, maps.Lister(), told, by, 8, nil)
					if d := f.Snapshot()[0].Division; d.Form != state.FormWire || d.Foreign == 0 || d.ForeignBytes < 50*d.Foreign {
						t.Errorf("the division is %+v, want dropped objects", d)
					}
					stop()
				})
			})
		}
	}
}

func TestDivision_EventsOfShardsThatStayComeWhileAChangeIsListed_I14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, maps, told := dividedYard(t, 2, shards.UID, Options{})
		s.switchGate(false)
		stop := runFactory(t, f)
		hold(t, f, 0)
		release := s.holdLists()
		if err := f.HoldShards(0, 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var stays, goes kube.Key
		for key, o := range s.all() {
			switch {
			case shards.Of(string(o.UID), 2) != 0:
			case stays.Name == "":
				stays = key
			case goes.Name == "":
				goes = key
			}
		}
		written := s.put(stays, "")
		s.remove(goes)
		synctest.Wait()
		if o, err := maps.Lister().Get(stays); err != nil || o.ResourceVersion != written.ResourceVersion {
			t.Errorf("during the list the object is %v (%v), want version %s", o, err, written.ResourceVersion)
		}
		if o, err := maps.Lister().Get(goes); err == nil {
			t.Errorf("during the list the deleted object is %v", o)
		}
		select {
		case <-maps.Synced():
		default:
			t.Error("a gained shard has made the informer unsynced")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := f.AwaitShards(ctx, 1); err == nil {
			t.Error("the gained shard is there before it was listed")
		}
		cancel()
		if err := awaitWithin(t, f, 0); err != nil {
			t.Errorf("the shard that stays is not there: %v", err)
		}
		release()
		hold(t, f, 0, 1)
		s.check(t, maps.Lister(), told, shards.UID, 2, []int{0, 1})
		if n := s.watching(); n != 1 {
			t.Errorf("%d watches are open, want that of the new set", n)
		}
		stop()
	})
}

func TestDivision_AServerThatIgnoresTheSelectorIsScreened_I14(t *testing.T) {
	for _, opts := range []Options{{}, {PagedLists: true}} {
		t.Run(fmt.Sprint(opts.PagedLists), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, maps, told := dividedYard(t, 4, shards.UID, opts)
				stop := runFactory(t, f)
				hold(t, f, 0, 3)
				if got := formOf(f); got != state.FormServer {
					t.Fatalf("the form is %q, want the server's", got)
				}
				s.switchGate(false) // the watches that are open keep their selectors
				s.put(kube.Key{Namespace: "ns", Name: "a"}, "")
				synctest.Wait()
				if got := formOf(f); got != state.FormServer {
					t.Errorf("the form is %q though nothing was seen, want the server's", got)
				}
				s.cutWatches()
				time.Sleep(20 * time.Second)
				for i := range 20 {
					s.put(kube.Key{Namespace: "ns", Name: fmt.Sprint("more-", i)}, "")
				}
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if got := formOf(f); got != state.FormWire {
					t.Errorf("the form is %q after objects of other shards have come, want the wire's", got)
				}
				s.check(t, maps.Lister(), told, shards.UID, 4, []int{0, 3})
				if n := s.watching(); n != 1 {
					t.Errorf("%d watches are open, want one", n)
				}
				s.switchGate(true)
				hold(t, f, 0, 2)
				if got := formOf(f); got != state.FormServer {
					t.Errorf("the form is %q after a change and the gate's return, want the server's", got)
				}
				s.check(t, maps.Lister(), told, shards.UID, 4, []int{0, 2})
				stop()
			})
		})
	}
}

func TestDivision_AnObjectMovesWithItsOwner_I14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, maps, told := dividedYard(t, 2, shards.Owner, Options{})
		mine, others := "", ""
		for i := 0; mine == "" || others == ""; i++ {
			if owner := fmt.Sprint("owner-", i); shards.Of(owner, 2) == 0 {
				mine = owner
			} else {
				others = owner
			}
		}
		key := kube.Key{Namespace: "ns", Name: "moves"}
		s.put(key, mine)
		stop := runFactory(t, f)
		hold(t, f, 0)
		for i := range 4 {
			owner, want := mine, true
			if i%2 == 1 {
				owner, want = others, false
			}
			version := kube.ParseVersion(s.put(key, owner).ResourceVersion)
			synctest.Wait()
			if _, err := maps.Lister().Get(key); (err == nil) != want {
				t.Errorf("with owner %s the object is read with error %v", owner, err)
			}
			s.check(t, maps.Lister(), told, shards.Owner, 2, []int{0})
			if got := maps.Reached(); got < version {
				t.Errorf("the informer has reached version %d, want %d of an event that it has seen", got, version)
			}
			version = kube.ParseVersion(s.put(kube.Key{Namespace: "ns", Name: "foreign"}, others).ResourceVersion)
			synctest.Wait()
			if got := maps.Reached(); got < version {
				t.Errorf("the informer has reached version %d, want %d of an event that it has dropped", got, version)
			}
		}
		stop()
	})
}

func TestDivision_OwnWritesToOtherShardsAreNotCached_I14(t *testing.T) {
	for _, by := range []shards.By{shards.UID, shards.Namespace, shards.Owner} {
		synctest.Test(t, func(t *testing.T) {
			s, f, maps, told := dividedYard(t, 8, by, Options{})
			stop := runFactory(t, f)
			hold(t, f, 2, 3)
			for i := range 30 {
				o := s.put(kube.Key{Namespace: fmt.Sprint("ns-", i%9), Name: fmt.Sprint("own-", i)}, fmt.Sprint("owner-", i))
				f.Observe(kube.Written{
					Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Effect: kube.Stored, Key: kube.KeyOf(o), UID: o.UID,
					Version: kube.ParseVersion(o.ResourceVersion), Object: o,
				})
				_, err := maps.Lister().Get(kube.KeyOf(o))
				if held := slices.Contains([]int{2, 3}, shards.Of(valueOf(by, o), 8)); held != (err == nil) {
					t.Errorf("by %s: an own write of a held shard %v is read with %v", by, held, err)
				}
			}
			synctest.Wait()
			s.check(t, maps.Lister(), told, by, 8, []int{2, 3})
			stop()
		})
	}
}

// A write that is in another shard has no event in those that are held. One list shows for all of
// them that they are not older, and which are.
func TestCatchUp_OneListIsEnoughForAllHeldShards_M14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, maps, _ := dividedYard(t, 16, shards.UID, Options{})
		stop := runFactory(t, f)
		hold(t, f, 1, 2, 3, 5, 7, 11, 12)
		s.begunLists()
		catchUp := func(floor Floor, within time.Duration) CaughtUp {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			got := f.CatchUp(ctx, func(schema.GroupKind) Floor { return floor })[0]
			if lists := s.begunLists(); got.Lists != len(lists) || len(lists) > 1 {
				t.Errorf("for %+v the server was asked for %q, and %d are reported; want one", floor, lists, got.Lists)
			}
			return got
		}
		of := func(key kube.Key) int { return shards.Of(valueOf(shards.UID, s.all()[key]), 16) }
		foreign := kube.Key{Namespace: "ns", Name: "foreign"}
		for s.put(foreign, ""); of(foreign) != 0; {
			s.remove(foreign)
			s.put(foreign, "")
		}
		v := kube.ParseVersion(s.put(foreign, "").ResourceVersion)
		if got := catchUp(Floor{Version: v}, time.Second); got.Err != nil || got.Lists != 1 || got.Version != v {
			t.Errorf("after a write to another shard: %+v, want version %d by one list", got, v)
		}
		if got := catchUp(Floor{Present: true}, time.Second); got.Err != nil || got.Lists != 1 || got.Version != v {
			t.Errorf("of the present: %+v, want version %d by one list", got, v)
		}

		s.mute(true)
		var mine kube.Key
		for o := range maps.Lister().All() {
			mine = kube.KeyOf(o)
		}
		v = kube.ParseVersion(s.put(mine, "").ResourceVersion)
		got := catchUp(Floor{Version: v}, time.Second)
		if got.Err == nil || strings.Count(got.Err.Error(), "its watch has reached") != 1 {
			t.Errorf("while the event of a held shard is late: %+v, want an error about it alone", got)
		}
		time.AfterFunc(time.Second, func() { s.mute(false) })
		if got := catchUp(Floor{Version: v}, time.Minute); got.Err != nil || got.Lists != 1 {
			t.Errorf("after the event has come: %+v, want one list", got)
		}
		if o, err := maps.Lister().Get(mine); err != nil || kube.ParseVersion(o.ResourceVersion) != v {
			t.Errorf("the informer shows %v, %v after it caught up, want version %d", o, err, v)
		}
		stop()
	})
}

// Sets, the gate and connections change at random, under changing objects.
func TestDivision_RandomChangesLeadToTheHeldObjects_I14(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				by := []shards.By{shards.UID, shards.Namespace, shards.Owner}[seed%3]
				s, f, maps, told := dividedYard(t, 6, by, Options{PagedLists: seed%2 == 0, PageSize: 7, Compact: Compact{}})
				stop := runFactory(t, f)
				var held []int
				for range 60 {
					switch key := (kube.Key{Namespace: fmt.Sprint("ns-", random.IntN(7)), Name: fmt.Sprint("object-", random.IntN(40))}); random.IntN(9) {
					case 0:
						held = nil
						for shard := range 6 {
							if random.IntN(2) == 0 {
								held = append(held, shard)
							}
						}
						if err := f.HoldShards(held...); err != nil {
							t.Fatal(err)
						}
					case 1:
						s.switchGate(random.IntN(2) == 0)
					case 2:
						s.cutWatches()
					case 3:
						s.remove(key)
					case 4:
						time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
					default:
						s.put(key, []string{"", fmt.Sprint("owner-", random.IntN(9))}[random.IntN(2)])
					}
					if random.IntN(3) == 0 {
						synctest.Wait()
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				if err := f.AwaitShards(ctx, held...); err != nil {
					t.Fatal(err)
				}
				f.CatchUp(ctx, func(schema.GroupKind) Floor { return Floor{Present: true} })
				time.Sleep(time.Minute)
				synctest.Wait()
				s.check(t, maps.Lister(), told, by, 6, held)
				stop()
			})
		})
	}
}

// Informers of each form of the objects hold the same.
func TestDivision_EachRepresentationIsDivided_I14(t *testing.T) {
	for _, gate := range []bool{true, false} {
		for _, by := range []shards.By{shards.UID, shards.Owner} {
			synctest.Test(t, func(t *testing.T) {
				s, f, whole, _ := dividedYard(t, 4, by, Options{})
				s.switchGate(gate)
				kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
				packed := For[*corev1.ConfigMap](f)
				metadata, loose := ForMetadata(f, kind), ForKind(f, kind)
				resource := ForResource(f, corev1.SchemeGroupVersion.WithResource("configmaps"))
				if err := whole.SetScopes(Scope{FieldSelector: "metadata.namespace!=other"}); err != nil {
					t.Fatal(err)
				}
				if err := packed.Compact(Compact{Codec: fixture.Codec{}}); err != nil {
					t.Fatal(err)
				}
				stop := runFactory(t, f)
				hold(t, f, 0)
				hold(t, f, 1, 2)
				later := For[*corev1.ConfigMap](f)
				for i := range 40 {
					s.put(kube.Key{Namespace: fmt.Sprint("ns-", i%7), Name: fmt.Sprint("object-", i+20)}, "")
				}
				time.Sleep(time.Second)
				synctest.Wait()
				want := map[kube.Key]bool{}
				for key, o := range s.all() {
					if shard := shards.Of(valueOf(by, o), 4); shard == 1 || shard == 2 {
						want[key] = true
					}
				}
				for name, has := range map[string]map[kube.Key]bool{
					"packed": heldKeys(packed), "with a selector": heldKeys(whole), "metadata": heldKeys(metadata), "unstructured": heldKeys(loose),
					"of a resource": heldKeys(resource), "later": heldKeys(later),
				} {
					if !maps.Equal(has, want) {
						t.Errorf("gate %v, by %s: the informer %s has %d objects, want %d", gate, by, name, len(has), len(want))
					}
				}
				for _, state := range f.Snapshot() {
					if !state.Synced || state.Division.Held != "1-2" {
						t.Errorf("the state is %+v", state)
					}
				}
				stop()
			})
		}
	}
}

func heldKeys[T kube.Object](i *SharedInformer[T]) map[kube.Key]bool {
	keys := map[kube.Key]bool{}
	for o := range i.Lister().All() {
		keys[kube.KeyOf(o)] = true
	}
	return keys
}

// An audit compares the held shards alone.
func TestDivision_AuditsFindNoObjectOfOtherShardsMissing(t *testing.T) {
	for _, by := range []shards.By{shards.UID, shards.Owner} {
		synctest.Test(t, func(t *testing.T) {
			s, f, _, _ := dividedYard(t, 4, by, Options{Audit: time.Minute})
			stop := runFactory(t, f)
			hold(t, f, 0, 1)
			for i := range 20 {
				s.put(kube.Key{Namespace: "ns", Name: fmt.Sprint("more-", i)}, fmt.Sprint("owner-", i))
				time.Sleep(20 * time.Second)
			}
			for _, scope := range f.Snapshot()[0].Scopes {
				if scope.Audits.Done == 0 || scope.Audits.Differences != 0 {
					t.Errorf("by %s: the audits of %s are %+v, want some without differences", by, scope.Scope, scope.Audits)
				}
			}
			stop()
		})
	}
}

func TestDivision_MisuseIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newYard(t)
		f, _ := factoryOn(t, s.Server, Options{})
		for what, err := range map[string]error{
			"nil function": f.Divide(4, nil), "no shards": f.Divide(0, everyKind("")), "too many": f.Divide(shards.Most+1, everyKind("")),
			"not divided": f.HoldShards(0), "not divided either": f.AwaitShards(t.Context(), 0),
		} {
			if err == nil {
				t.Errorf("%s: no error", what)
			}
		}
		if err := f.Divide(4, everyKind(shards.UID)); err != nil {
			t.Fatal(err)
		}
		For[*corev1.ConfigMap](f)
		stop := runFactory(t, f)
		synctest.Wait()
		for what, err := range map[string]error{
			"again": f.Divide(4, everyKind("")), "no such shard": f.HoldShards(4), "negative": f.HoldShards(-1), "not held": f.AwaitShards(t.Context(), 1),
		} {
			if err == nil || !strings.Contains(err.Error(), "shards") && !strings.Contains(err.Error(), "divide") {
				t.Errorf("%s: error %v", what, err)
			}
		}
		s.mu.Lock()
		s.mu.forbidden = true
		s.mu.Unlock()
		if err := f.HoldShards(1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := f.AwaitShards(ctx, 1); err == nil || !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("awaiting what is forbidden returned %v, want the state of the scope", err)
		}
		s.mu.Lock()
		s.mu.forbidden = false
		s.mu.Unlock()
		if err := awaitWithin(t, f, 1); err != nil {
			t.Error(err)
		}
		stop()
	})
}

func TestDivision_AnUnknownFieldEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := factoryOn(t, newYard(t).Server, Options{})
		For[*corev1.ConfigMap](f)
		if err := f.Divide(4, everyKind("name")); err != nil {
			t.Fatal(err)
		}
		if err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `by "name"`) || !strings.Contains(err.Error(), "ConfigMap") {
			t.Errorf("Run returned %v, want the kind and what it cannot be divided by", err)
		}
	})
}

func TestDivision_WhatCannotBeDividedIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, maps, _ := dividedYard(t, 4, shards.Namespace, Options{})
		nodes := For[*corev1.Node](f) // of cluster scope; the server has ConfigMaps only, in any answer
		_ = nodes
		stop := runFactory(t, f)
		synctest.Wait()
		states := f.Snapshot()
		if got := states[1].Division.Form; got != state.FormWhole || len(states[1].Scopes) != 1 {
			t.Errorf("a kind of cluster scope by namespaces is %q with %d scopes, want whole", got, len(states[1].Scopes))
		}
		if got := states[0].Division; got.Form == state.FormWhole || got.Count != 4 {
			t.Errorf("the division of a namespaced kind is %+v", got)
		}
		// A handle of namespaces watches those of the held shards, each as a whole.
		if err := maps.SetScopes(Scope{Namespaces: []string{"ns-0", "ns-1", "ns-2", "ns-3", "ns-4"}}); err != nil {
			t.Fatal(err)
		}
		if err := f.HoldShards(0, 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := 0
		for i := range 5 {
			if shards.Of(fmt.Sprint("ns-", i), 4) < 2 {
				want++
			}
		}
		if scopes := f.Snapshot()[0].Scopes; len(scopes) != want || scopes[0].Scope.ShardSelector != "" || scopes[0].Scope.Division != (listwatch.Division{}) {
			t.Errorf("the scopes of five namespaces are %v, want %d of them", scopes, want)
		}
		if _, err := maps.Lister().Get(kube.Key{Namespace: "other", Name: "x"}); err == nil || !strings.Contains(err.Error(), "other") {
			t.Errorf("an object out of the scope is read with %v", err)
		}
		_ = s
		stop()
	})
}
