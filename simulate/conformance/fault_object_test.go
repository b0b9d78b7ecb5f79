// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

func TestInformer_CorruptedObjectHarmsOnlyItself_B1(t *testing.T) {
	t.Run("protobuf", func(t *testing.T) {
		simulated(t, informer.Options{}, func(t *testing.T, w *world) {
			corrupted(t, w, informer.For[cmap](w.factory), configMaps, func(name, value string) runtime.Object { return configMap(name, value) })
		})
	})
	t.Run("JSON", func(t *testing.T) {
		simulated(t, informer.Options{}, func(t *testing.T, w *world) {
			corrupted(t, w, informer.For[*widget](w.factory), widgets, func(name, value string) runtime.Object { return newWidget(name, value) })
		})
	})
	t.Run("paged", func(t *testing.T) {
		simulated(t, informer.Options{PagedLists: true, PageSize: 1}, func(t *testing.T, w *world) {
			corrupted(t, w, informer.For[cmap](w.factory), configMaps, func(name, value string) runtime.Object { return configMap(name, value) })
		})
	})
}

func corrupted[T kube.Object](t *testing.T, w *world, i *informer.SharedInformer[T], r schema.GroupResource, make func(name, value string) runtime.Object) {
	w.Store(make("a", "1"), make("bad", "1"), make("c", "1"))
	w.Must(w.Corrupt(r, key("bad")))
	start(w)
	check := func(when, want string) {
		t.Helper()
		holds(t, i, want, when+": others suffer from one bad object")
		_, err := i.Lister().Get(key("bad"))
		if _, ok := errors.AsType[*kube.UndecodableError](err); !ok {
			t.Errorf("%s: get the bad object: got %v, want a *kube.UndecodableError", when, err)
		}
		if n := i.Snapshot().Undecodable; n != 1 {
			t.Errorf("%s: %d undecodable objects counted, want 1", when, n)
		}
		listed(t, i, when, "bad")
	}
	check("in the first list", "a=1 c=1")
	h, late := undecodableToldTo(w, i), ""
	pass(time.Second)
	if got, want := h(), "added a, added c, undecodable bad of bad"; got != want {
		t.Errorf("a handler that joins and asks is told %q, want %q", got, want)
	}
	w.Store(make("bad", "2"))
	pass(time.Second)
	late = h()
	holds(t, i, "a=1 bad=2 c=1", "the next version does not heal it")
	w.Must(w.Corrupt(r, key("bad")))
	w.Store(make("c", "2"))
	pass(time.Second)
	check("in the watch", "a=1 c=2")
	late += ", " + h()
	if n := w.lists(r); n > 4 { // pages
		t.Errorf("%d lists: one bad object leads to relists", n)
	}
	w.Must(w.Remove(r, key("bad")))
	pass(time.Second)
	if _, err := i.Lister().Get(key("bad")); !apierrors.IsNotFound(err) {
		t.Errorf("get the bad object after its deletion: got %v, want NotFound", err)
	}
	listed(t, i, "after its deletion")
	late += ", " + h()
	if want := "added bad, undecodable bad of bad, updated c, deleted bad"; late != want {
		t.Errorf("a handler that asks is told %q, want %q", late, want)
	}
}

// listed fails the test when the listing of what cannot be decoded has other
// names, or one without its metadata.
func listed[T kube.Object](t *testing.T, i *informer.SharedInformer[T], when string, want ...string) {
	t.Helper()
	var got []string
	for u := range i.Lister().Undecodable() {
		got = append(got, u.Key.Name)
		m := u.Metadata
		if _, ok := errors.AsType[*kube.UndecodableError](u.Err); !ok || m == nil || m.UID != u.UID || m.UID == "" || kube.ParseVersion(m.ResourceVersion) != u.Version || m.Kind != i.Kind().Kind {
			t.Errorf("%s: %s is listed with error %v and metadata %+v, want its own", when, u.Key, u.Err, m)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q are listed as undecodable, want %q", when, got, want)
	}
}

// undecodableToldTo has a handler of i write down each event as "added a", of
// what cannot be decoded with the name in its metadata; sorted, what came at once.
func undecodableToldTo[T kube.Object](w *world, i *informer.SharedInformer[T]) (next func() string) {
	w.T.Helper()
	told := make(chan string, 100)
	_, err := i.AddHandler(func(e kube.Event[T]) {
		text := fmt.Sprintf("%s %s", e.Type, e.Key.Name)
		if e.Undecodable != nil {
			text += " of " + e.Undecodable.Metadata.Name
		}
		told <- text
	}, informer.HandlerOptions{Undecodable: true})
	w.Must(err)
	return func() string {
		var out []string
		for len(told) > 0 {
			out = append(out, <-told)
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
}

func TestInformer_BrokenTransformHarmsOnlyItsObject_B2(t *testing.T) {
	for name, broken := range map[string]func() error{
		"error": func() error { return errors.New("cannot") },
		"panic": func() error { panic("cannot") },
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"), configMap("b", "broken"))
				i := informer.For[cmap](w.factory)
				w.Must(i.SetTransform(func(cm cmap) (cmap, error) {
					if cm.Data["v"] == "broken" {
						return nil, broken()
					}
					return cm, nil
				}))
				start(w)
				holds(t, i, "a=1", "others suffer from one object")
				_, err := i.Lister().Get(key("b"))
				if _, ok := errors.AsType[*kube.UndecodableError](err); !ok || !strings.Contains(err.Error(), "cannot") {
					t.Errorf("got %v, want a *kube.UndecodableError with the cause", err)
				}
				listed(t, i, "refused by the transform", "b")
				w.Store(configMap("a", "broken"), configMap("b", "2"))
				holds(t, i, "a=1 b=2", "the next version does not heal b, or the last good state of a is hidden")
				if _, err := i.Lister().Get(key("a")); err == nil {
					t.Error("Get of an object whose newest version the transform refuses has no error")
				}
				w.Store(configMap("a", "3"))
				holds(t, i, "a=3 b=2", "the event after is lost")
			})
		})
	}
}

func TestInformer_BrokenIndexFunctionHarmsOnlyItsIndex_B2(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"), configMap("b", "broken"))
		i := informer.For[cmap](w.factory)
		w.Must(i.AddIndex("v", func(cm cmap) []string {
			if cm.Data["v"] == "broken" {
				panic("cannot")
			}
			return []string{cm.Data["v"]}
		}))
		start(w)
		holds(t, i, "a=1 b=broken", "an object is lost to an index")
		w.Store(configMap("b", "2"))
		if keys, err := i.Lister().List(informer.QueryOptions{Index: "v", IndexValue: "2"}); err != nil || len(keys) != 1 {
			t.Errorf("got %v, %v; want b under 2: the next version does not heal it", keys, err)
		}
	})
}

// A handler that panics loses the call, not its place.
func TestInformer_PanickingHandlerHarmsOnlyItsCall_B2(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		i := informer.For[cmap](w.factory)
		h := told(w, i)
		var calls atomic.Int64
		r, err := i.AddHandler(func(kube.Event[cmap]) { calls.Add(1); panic("cannot") }, informer.HandlerOptions{})
		w.Must(err)
		start(w)
		w.Store(configMap("a", "2"))
		pass(time.Second)
		if got := r.Snapshot(); calls.Load() != 2 || got.Panics != 2 {
			t.Errorf("%d calls, %d panics counted; want 2 and 2", calls.Load(), got.Panics)
		}
		if got, want := h.next(), "added a=1, updated a=2"; got != want {
			t.Errorf("another handler was told %q, want %q", got, want)
		}
	})
}

func TestInformer_HostileValuesPassThrough_B5(t *testing.T) {
	long := strings.Repeat("x", 253)
	nasty := []string{"", "\x00", "\u2028 <b>&amp;", "\"\\\n\r\t", "ü\U0001F600", "{}", "null", strings.Repeat("ÿ", 100_000)}
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		i, j := informer.For[cmap](w.factory), informer.For[*widget](w.factory)
		start(w)
		for n, value := range nasty {
			name := fmt.Sprint(n) + long[len(fmt.Sprint(n)):]
			cm, wi := configMap(name, value), newWidget(name, value)
			for _, m := range []metav1.Object{cm, wi} {
				m.SetAnnotations(map[string]string{"a/" + value: value})
			}
			w.Store(cm, wi)
			pass(time.Second)
			gotMap, err := i.Lister().Get(key(name))
			w.Must(err)
			gotWidget, err := j.Lister().Get(key(name))
			w.Must(err)
			if gotMap.Data["v"] != value || gotWidget.Spec.Value != value || gotMap.Annotations["a/"+value] != value {
				t.Errorf("value %d came as %.40q and %.40q, want %.40q", n, gotMap.Data["v"], gotWidget.Spec.Value, value)
			}
		}
		stands(t, i, state.Live, "")
		stands(t, j, state.Live, "")
		if n := w.lists(configMaps) + w.lists(widgets); n != 2 {
			t.Errorf("%d lists, want 2: a hostile value leads to relists", n)
		}
	})
}

// Each parent has a child of its own, whatever the parents are called: cut off,
// the names of two of them must not become one.
func TestInformer_NamesOfChildrenStayApartWhenCutOff_B5(t *testing.T) {
	long := strings.Repeat("x", 252)
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		i := informer.For[*widget](w.factory)
		start(w)
		parents := []string{long + "a", long + "b", long[:240], long[:230], "x", "x-web", strings.Repeat("y.", 100) + "a", strings.Repeat("y.", 100) + "b"}
		names := map[string]func(parent string) string{
			"name":      func(parent string) string { return reconcile.ChildName(parent, "web") },
			"DNS label": func(parent string) string { return reconcile.ChildDNSLabel(parent, "web", "0") },
		}
		for what, nameOf := range names {
			for _, parent := range parents {
				w.Store(newWidget(nameOf(parent), what+" of "+parent))
			}
			pass(time.Second)
			for _, parent := range parents {
				child, err := i.Lister().Get(key(nameOf(parent)))
				w.Must(err)
				if child.Spec.Value != what+" of "+parent {
					t.Errorf("%s %q is the child of %.40q too: each would undo the other's forever", what, child.Name, child.Spec.Value)
				}
			}
		}
		if n, want := len(strings.Fields(held(i))), 2*len(parents); n < want {
			t.Errorf("%d children, want %d", n, want)
		}
	})
}

func TestInformer_SameNameWithAnotherUIDIsAnotherObject_B6(t *testing.T) {
	for name, missed := range map[string]func(*world){
		"behind the watch": func(w *world) { w.Must(w.RecreateBehindWatch(configMaps, key("a"))) },
		"behind a relist": func(w *world) {
			w.Network.Refuse(true)
			w.Network.Cut()
			w.Delete(configMaps, "a")
			w.Store(configMap("a", "1"))
			w.Compact()
			w.Network.Refuse(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"), configMap("b", "1"))
				i := informer.For[cmap](w.factory)
				h := told(w, i)
				var merged []string
				_, err := i.AddHandler(func(e kube.Event[cmap]) {
					text := e.Type.String()
					if e.Type == kube.Updated && e.Old.UID != e.New.UID {
						text += " from another UID"
					}
					merged = append(merged, text+" "+e.Key.Name)
				}, informer.HandlerOptions{})
				w.Must(err)
				start(w)
				before, err := i.Lister().Get(key("a"))
				w.Must(err)
				h.next()
				merged = nil
				missed(w)
				pass(time.Minute)
				after, err := i.Lister().Get(key("a"))
				w.Must(err)
				if before.UID == after.UID {
					t.Errorf("the UID is still %s", after.UID)
				}
				if got, want := h.next(), "deleted a=1, added a=1"; got != want {
					t.Errorf("told %q, want %q", got, want)
				}
				if got, want := strings.Join(merged, ", "), "deleted a, added a"; got != want {
					t.Errorf("the level-triggered handler was told %q, want %q", got, want)
				}
			})
		})
	}
}

func TestInformer_BlockedHandlerCostsNoOtherAndLittleMemory_C1(t *testing.T) {
	const updates = 5000
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "0"), configMap("b", "0"), configMap("c", "0"))
		i := informer.For[cmap](w.factory)
		release := make(chan struct{})
		var last atomic.Value
		blocked, err := i.AddHandler(func(e kube.Event[cmap]) {
			<-release
			last.Store(valueOf(e.Latest()))
		}, informer.HandlerOptions{Name: "blocked"})
		w.Must(err)
		free := told(w, i)
		start(w)
		for n := range updates {
			_, err := w.Put(configMap("a", fmt.Sprint(n+1)))
			w.Must(err)
		}
		pass(time.Second)
		holds(t, i, fmt.Sprintf("a=%d b=0 c=0", updates), "a blocked handler holds up the informer")
		if got := free.next(); !strings.HasSuffix(got, fmt.Sprintf("updated a=%d", updates)) {
			t.Errorf("another handler was told … %s, want the last state at the end", got[max(0, len(got)-40):])
		}
		if n := blocked.Snapshot().Backlog; n > 3 {
			t.Errorf("the blocked handler's backlog is %d, want one for each of the 3 objects at most", n)
		}
		close(release)
		pass(time.Second)
		if got := last.Load(); got != fmt.Sprint(updates) {
			t.Errorf("the handler was last told %v, want %d: what it is told of a key must end in its state", got, updates)
		}
	})
}
