// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
)

type cmap = *corev1.ConfigMap

func TestInformer_SilentWatchIsOpenedAgain_A1(t *testing.T) {
	for _, c := range []struct {
		name    string
		silence func(*world)
		before  time.Duration // that the watch lives
		within  time.Duration // until the change must be seen
	}{
		{"the server says nothing more", func(w *world) { w.Mute(configMaps) }, 2 * time.Minute, 3 * time.Minute},
		{"the network loses all", func(w *world) { w.Network.BlackHole() }, 2 * time.Minute, 3 * time.Minute},
		{"silent before the first bookmark", func(w *world) { w.Mute(configMaps) }, time.Second, 11 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"))
				i := informer.For[cmap](w.factory)
				start(w)
				pass(c.before)
				holds(t, i, "a=1", "it has not synced")
				c.silence(w)
				w.Store(configMap("a", "2"))
				holds(t, i, "a=1", "the watch is not silent; this test tests nothing")
				pass(c.within)
				holds(t, i, "a=2", "a silent watch blinds the informer")
				if n := w.lists(configMaps); n != 1 {
					t.Errorf("%d lists, want 1: the watch can go on from its last version", n)
				}
			})
		})
	}
}

func TestInformer_StreamingListThatNeverEndsIsReplacedByPages_A2(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		w.NoEndBookmark(configMaps, true)
		i := informer.For[cmap](w.factory)
		other := informer.For[*corev1.Secret](w.factory)
		start(w)
		stands(t, other, state.Live, "")
		pass(2 * time.Minute)
		holds(t, i, "a=1", "a streaming list without an end is waited for forever")
		streams := w.streams(configMaps)
		if streams > 2 {
			t.Errorf("%d streaming lists, want two tries at most", streams)
		}
		// Within the hour a relist does not try it again.
		lists := w.lists(configMaps)
		w.Network.Refuse(true)
		w.Network.Cut()
		w.Store(configMap("a", "2"))
		w.Compact()
		w.Network.Refuse(false)
		pass(5 * time.Minute)
		holds(t, i, "a=2", "the relist did not come to its end")
		if w.lists(configMaps) == lists {
			t.Error("no list after a compaction; this test tests nothing")
		}
		if n := w.streams(configMaps); n != streams {
			t.Errorf("%d streaming lists after a relist, want still %d: the server's fault is remembered for an hour", n, streams)
		}
	})
}

func TestInformer_StreamingListThatNeverEndsIsSaidOnce_A2(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.NoEndBookmark(configMaps, true)
		informer.For[cmap](w.factory, informer.Scope{Namespaces: []string{"a", "b", "c"}})
		start(w)
		pass(30 * time.Minute)
		if n := w.logged("does not stream lists of this kind"); n != 1 {
			t.Errorf("%d lines of log about the fall back to pages of one kind in three namespaces, want 1: %q", n, w.journal.lines)
		}
	})
}

func TestInformer_StreamingListThatNeverEndsIsRememberedForTheKind_A2(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		w.NoEndBookmark(configMaps, true)
		i := informer.For[cmap](w.factory, informer.Scope{Namespaces: []string{"ns"}})
		start(w)
		pass(2 * time.Minute)
		holds(t, i, "a=1", "it has not fallen back")
		s := stateOf(i)
		if s.StreamFallbacks != 1 || time.Until(s.PagedUntil) < 50*time.Minute || time.Until(s.PagedUntil) > time.Hour {
			t.Errorf("got %d fall backs, pages until %s; want 1, and most of an hour", s.StreamFallbacks, s.PagedUntil)
		}
		streams := w.streams(configMaps)
		late := informer.For[cmap](w.factory, informer.Scope{Namespaces: []string{"other"}})
		pass(time.Second)
		if n := w.streams(configMaps); n != streams {
			t.Errorf("%d streaming lists, want still %d: another scope of the kind must not find out again what one knows", n, streams)
		}
		select {
		case <-late.Synced():
		default:
			t.Errorf("a scope that came later is not synced at once: %s", stateOf(late))
		}
		if all := late.Snapshot().Scopes; all[len(all)-1].PagedUntil.IsZero() {
			t.Errorf("got %+v; want to see in its state that lists go by pages", all[len(all)-1])
		}
		// Then the server gets another chance, and with it the kind.
		w.NoEndBookmark(configMaps, false)
		pass(time.Hour)
		informer.For[cmap](w.factory, informer.Scope{Namespaces: []string{"third"}})
		pass(time.Second)
		if n := w.streams(configMaps); n != streams+1 {
			t.Errorf("%d streaming lists after the hour, want %d", n, streams+1)
		}
		if s := stateOf(i); !s.PagedUntil.IsZero() {
			t.Errorf("got pages until %s after the hour is over, want the zero time", s.PagedUntil)
		}
	})
}

func TestInformer_ExpiredWatchFindsWhatItMissed_A3(t *testing.T) {
	for name, opts := range map[string]informer.Options{"streaming": {}, "paged": {PagedLists: true, PageSize: 2}} {
		for restart, forget := range map[string]func(*world){
			"compaction":    func(w *world) { w.Compact() },
			"cache restart": func(w *world) { w.RestartCache() },
		} {
			t.Run(name+" after "+restart, func(t *testing.T) {
				simulated(t, opts, func(t *testing.T, w *world) {
					w.Store(configMap("changes", "1"), configMap("goes", "1"), configMap("stays", "1"))
					i := informer.For[cmap](w.factory)
					h := told(w, i)
					start(w)
					pass(time.Minute)
					h.next()
					w.Network.Refuse(true)
					w.Network.Cut()
					w.Store(configMap("changes", "2"), configMap("comes", "2"))
					w.Delete(configMaps, "goes")
					forget(w)
					pass(time.Minute)
					holds(t, i, "changes=1 goes=1 stays=1", "the old state must be served meanwhile")
					w.Network.Refuse(false)
					pass(time.Minute)
					holds(t, i, "changes=2 comes=2 stays=1", "what the watch missed is lost")
					got := h.next()
					for _, want := range []string{"updated changes=2", "added comes=2", "deleted goes=1"} {
						if strings.Count(got, want) != 1 {
							t.Errorf("told %q, want %q once", got, want)
						}
					}
					if strings.Contains(got, "stays") {
						t.Errorf("told %q: an unchanged object is not news", got)
					}
				})
			})
		}
	}
}

func TestInformer_CleanEndOfAWatchIsNotARelist_A8(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		i := informer.For[cmap](w.factory)
		start(w)
		for n, value := range []string{"2", "3", "4"} {
			pass(time.Minute)
			w.CloseWatches(configMaps)
			w.Store(configMap("a", value))
			pass(100 * time.Millisecond)
			holds(t, i, "a="+value, "the watch was not opened again at once")
			if lists := w.lists(configMaps); lists != 1 {
				t.Fatalf("%d lists after end %d of the watch, want 1", lists, n+1)
			}
		}
		if n := w.logged(""); n != 0 {
			t.Errorf("%d lines of log, want none: a clean end is no trouble: %q", n, w.journal.lines)
		}
		// End after end is trouble: it is not answered by a storm.
		before := len(w.Served())
		for range 600 {
			w.CloseWatches(configMaps)
			pass(100 * time.Millisecond)
		}
		if n := len(w.Served()) - before; n > 40 {
			t.Errorf("%d requests in a minute of watches that end at once, want 40 at most", n)
		}
	})
}

// A day passes with an open watch, a mute server and a black hole: the clock
// of the bubble goes on, and nothing is left at the end.
func TestNetwork_ClockGoesOn_S5(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		i := informer.For[cmap](w.factory)
		start(w)
		w.Network.BlackHoleNew(true)
		w.Network.BlackHole()
		pass(24 * time.Hour)
		w.Network.BlackHoleNew(false)
		w.Store(configMap("a", "2"))
		pass(5 * time.Minute)
		holds(t, i, "a=2", "the network is sound again, and nobody looked")
	})
}
