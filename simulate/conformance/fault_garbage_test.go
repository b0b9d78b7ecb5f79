// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate"
)

func TestInformer_BrokenAnswersAreNotTaken_A15(t *testing.T) {
	for _, how := range []simulate.Spoilage{simulate.Truncated, simulate.Garbage, simulate.OtherPage, simulate.Huge} {
		for _, protobuf := range []bool{true, false} {
			name := fmt.Sprintf("%s, protobuf %t", how, protobuf)
			t.Run("list: "+name, func(t *testing.T) {
				simulated(t, informer.Options{PagedLists: true}, func(t *testing.T, w *world) {
					if protobuf {
						brokenList(t, w, informer.For[cmap](w.factory), how)
					} else {
						brokenList(t, w, informer.For[*widget](w.factory), how)
					}
				})
			})
			t.Run("event: "+name, func(t *testing.T) {
				simulated(t, informer.Options{}, func(t *testing.T, w *world) {
					if protobuf {
						brokenEvent(t, w, informer.For[cmap](w.factory), how)
					} else {
						brokenEvent(t, w, informer.For[*widget](w.factory), how)
					}
				})
			})
		}
	}
}

func brokenList[T kube.Object](t *testing.T, w *world, i *informer.SharedInformer[T], how simulate.Spoilage) {
	w.Store(configMap("a", "1"), newWidget("a", "1"))
	w.Spoil(configMaps, how)
	w.Spoil(widgets, how)
	start(w)
	pass(time.Minute)
	holds(t, i, "a=1", "a list that cannot be read is not asked for again")
}

func brokenEvent[T kube.Object](t *testing.T, w *world, i *informer.SharedInformer[T], how simulate.Spoilage) {
	w.Store(configMap("a", "1"), newWidget("a", "1"))
	start(w)
	pass(time.Minute)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w.SpoilEvent(configMaps, how)
	w.SpoilEvent(widgets, how)
	w.Store(configMap("a", "2"), newWidget("a", "2"))
	w.Store(configMap("b", "1"), newWidget("b", "1"))
	pass(time.Minute)
	holds(t, i, "a=2 b=1", "an event that cannot be read is lost")
	want := 1
	if w.lists(widgets) > 0 && (how == simulate.Garbage || how == simulate.OtherPage) {
		want = 2 // what follows a garbled line is read on, and a list makes up for what it may have hidden
	}
	if lists := max(w.lists(configMaps), w.lists(widgets)); lists != want {
		t.Errorf("%d lists, want %d: the watch can go on from the last good version", lists, want)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("%d MiB of heap are kept after a frame that is too large", grown>>20)
	}
}

func TestInformer_ExpiredPagesBeginAnew_A16(t *testing.T) {
	for name, expire := range map[string]func(*world){
		"once":       func(w *world) { w.ExpireContinue(1) },
		"again":      func(w *world) { w.ExpireContinue(2) },
		"every time": func(w *world) { w.ExpireContinue(1 << 30) },
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{PagedLists: true, PageSize: 2}, func(t *testing.T, w *world) {
				for _, name := range []string{"a", "b", "c", "d", "e"} {
					w.Store(configMap(name, "1"))
				}
				expire(w)
				i := informer.For[cmap](w.factory)
				h := told(w, i)
				start(w)
				pass(time.Minute)
				holds(t, i, "a=1 b=1 c=1 d=1 e=1", "a list whose token expires does not come to its end")
				if got, want := h.next(), "added a=1, added b=1, added c=1, added d=1, added e=1"; len(got) != len(want) {
					t.Errorf("told %q, want each object once", got)
				}
			})
		})
	}
}

// A list that begins anew is of one version: what was on the pages before the
// token expired, and is gone, does not come in.
func TestInformer_PagesOfTwoVersionsAreNotMixed_A16(t *testing.T) {
	simulated(t, informer.Options{PagedLists: true, PageSize: 2}, func(t *testing.T, w *world) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			w.Store(configMap(name, "1"))
		}
		i := informer.For[cmap](w.factory)
		h := told(w, i)
		w.Network.Delay(10 * time.Second)
		start(w)
		for w.asked("list", "configmaps") == 0 {
			pass(time.Second)
		}
		// The first page is on its way.
		w.Delete(configMaps, "a")
		w.Store(configMap("b", "2"))
		w.Compact()
		w.ExpireContinue(1)
		pass(10 * time.Minute)
		holds(t, i, "b=2 c=1 d=1 e=1", "an object of an abandoned list came in")
		if got := h.next(); len(got) != len("added b=2, added c=1, added d=1, added e=1") {
			t.Errorf("told %q, want the four objects once", got)
		}
	})
}
