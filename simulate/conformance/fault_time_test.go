// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
)

func TestInformer_StoreThatWentBackIsTakenAsItIs_A4(t *testing.T) {
	for name, opts := range map[string]informer.Options{"streaming": {}, "paged": {PagedLists: true}} {
		t.Run(name, func(t *testing.T) {
			simulated(t, opts, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"), configMap("b", "1"))
				i := informer.For[cmap](w.factory)
				h := told(w, i)
				start(w)
				w.Store(configMap("a", "2"), configMap("c", "1"), configMap("d", "1"))
				pass(2 * time.Minute)
				holds(t, i, "a=2 b=1 c=1 d=1", "it has not synced")
				h.next()
				w.Rewind(3)
				pass(8 * time.Minute)
				holds(t, i, "a=1 b=1", "a store that went back is not noticed")
				got := h.next()
				for _, want := range []string{"updated a=1", "deleted c=1", "deleted d=1"} {
					if strings.Count(got, want) != 1 {
						t.Errorf("told %q, want %q once", got, want)
					}
				}
				if w.logged("went back") != 1 {
					t.Errorf("log %q, want one loud line", w.journal.lines)
				}
				w.Store(configMap("a", "3"), configMap("e", "1"))
				pass(time.Second)
				holds(t, i, "a=3 b=1 e=1", "the informer does not follow the restored store")
			})
		})
	}
}

// What is the same before and after is told of too: whoever counts on the old
// time must look again.
func TestInformer_NewEpochDeliversEachObjectOnce_A4(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"), configMap("b", "1"))
		i := informer.For[cmap](w.factory)
		h := told(w, i)
		start(w)
		w.Store(configMap("a", "2"))
		pass(2 * time.Minute)
		h.next()
		w.Rewind(1)
		pass(8 * time.Minute)
		if got := h.next(); strings.Count(got, "a=1") != 1 || strings.Count(got, "b=1") != 1 {
			t.Errorf("told %q, want each object once", got)
		}
	})
}

func TestInformer_FirstSyncIsConsistentOnALaggingServer_A5(t *testing.T) {
	for name, opts := range map[string]informer.Options{"streaming": {}, "paged": {PagedLists: true}} {
		t.Run(name, func(t *testing.T) {
			simulated(t, opts, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"))
				w.LagTo(w.Revision())
				w.Store(configMap("a", "2"), configMap("b", "1"))
				i := informer.For[cmap](w.factory)
				h := told(w, i)
				start(w)
				pass(time.Minute)
				holds(t, i, "a=2 b=1", "the first sync is of the past")
				if got := h.next(); strings.Contains(got, "a=1") {
					t.Errorf("told %q: a state of the past", got)
				}
				w.CatchUp()
				w.Store(configMap("b", "2"))
				pass(time.Minute)
				holds(t, i, "a=2 b=2", "the watch does not go on when the server has caught up")
			})
		})
	}
}

func TestInformer_ServerThatLagsBehindTakesNothingBack_A5(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		past := w.Revision()
		i := informer.For[cmap](w.factory)
		h := told(w, i)
		start(w)
		w.Store(configMap("a", "2"), configMap("b", "1"))
		pass(2 * time.Minute)
		h.next()
		// A fail-over to a replica that is behind.
		w.LagTo(past)
		w.CloseWatches(configMaps)
		pass(10 * time.Minute)
		holds(t, i, "a=2 b=1", "the informer went back in time with the server")
		if got := h.next(); got != "" {
			t.Errorf("told %q, want nothing: nothing has happened", got)
		}
		w.CatchUp()
		w.Store(configMap("a", "3"))
		pass(5 * time.Minute)
		holds(t, i, "a=3 b=1", "the informer does not follow when the server has caught up")
	})
}

func TestInformer_CompactionAheadOfALaggingServerHidesNothing_A5(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"))
		i := informer.For[cmap](w.factory)
		start(w)
		w.LagTo(w.Revision())
		w.Store(configMap("a", "2"), configMap("b", "1"))
		w.Compact()
		w.CatchUp()
		pass(5 * time.Minute)
		holds(t, i, "a=2 b=1", "the watch went on without what was compacted before it was told")
	})
}

func TestInformer_AuditFindsAnEventThatTheServerLost_A6(t *testing.T) {
	labelled := configMap("a", "1")
	labelled.Labels = map[string]string{"team": "x"}
	changed := labelled.DeepCopy()
	changed.Data["v"] = "2"
	fresh := labelled.DeepCopy()
	fresh.Name = "c"
	for _, c := range []struct {
		name  string
		lose  func(*world)
		want  string
		event string
	}{
		{"a creation", func(w *world) { w.Store(fresh) }, "a=1 c=1", "added c=1"},
		{"an update", func(w *world) { w.Store(changed) }, "a=2", "updated a=2"},
		{"a deletion", func(w *world) { w.Delete(configMaps, "a") }, "", "deleted a=1"},
	} {
		for name, scope := range map[string]informer.Scope{"": {}, " of a selection": {Namespaces: []string{"ns"}, LabelSelector: "team=x"}} {
			t.Run(c.name+name, func(t *testing.T) {
				simulated(t, informer.Options{Audit: 2 * time.Hour, PageSize: 1}, func(t *testing.T, w *world) {
					w.Store(labelled.DeepCopy())
					if scope.LabelSelector != "" {
						w.Store(configMap("other", "1"))
					}
					i := informer.For[cmap](w.factory, scope)
					h := told(w, i)
					start(w)
					pass(time.Minute)
					h.next()
					w.DropEvent(configMaps, 1)
					c.lose(w)
					pass(time.Minute)
					if got := h.next(); got != "" {
						t.Fatalf("told %q; this test tests nothing", got)
					}
					pass(4 * time.Hour)
					holds(t, i, c.want, "an event that the server lost is never made good")
					if got := h.next(); got != c.event {
						t.Errorf("told %q, want %q", got, c.event)
					}
					s := stateOf(i)
					if s.Audits.Differences != 1 || s.Audits.Repaired != 1 || s.Audits.Done == 0 || s.Relists["audit"] != 1 {
						t.Errorf("got %+v and relists %v, want one difference, found and repaired by one list", s.Audits, s.Relists)
					}
					if n := w.logged("events were lost"); n != 1 {
						t.Errorf("%d lines of log about it, want 1: %q", n, w.journal.lines)
					}
				})
			})
		}
	}
}

// Writes that go on, own ones before their echo among them, are no differences.
func TestInformer_AuditRaisesNoFalseAlarm_A6(t *testing.T) {
	simulated(t, informer.Options{Audit: 10 * time.Minute, PageSize: 3}, func(t *testing.T, w *world) {
		for n := range 10 {
			w.Store(configMap(fmt.Sprint("m-", n), "0"))
		}
		i := informer.For[cmap](w.factory)
		start(w)
		random := rand.New(rand.NewPCG(6, 6))
		for n := range 5000 {
			name := fmt.Sprint("m-", random.IntN(20))
			_, err := i.Lister().Get(key(name))
			switch {
			case err == nil && n%3 == 0:
				w.Delete(configMaps, name)
			case err == nil && n%3 == 1:
				w.writeOwn(i, name, fmt.Sprint("own ", n))
			default:
				w.Store(configMap(name, fmt.Sprint(n)))
			}
			if n%500 == 0 {
				w.CloseWatches(configMaps)
			}
			// Writes of other kinds let the watch fall behind the version of a list.
			w.Store(newWidget("other", fmt.Sprint(n)))
			pass(time.Duration(random.IntN(20_000)) * time.Millisecond)
		}
		s := stateOf(i)
		if s.Audits.Done < 20 {
			t.Errorf("%d audits done, want 20 at least; this test tests nothing: %+v", s.Audits.Done, s.Audits)
		}
		if s.Audits.Differences != 0 || s.Relists["audit"] != 0 {
			t.Errorf("got %+v, want no differences: no event was lost", s.Audits)
		}
	})
}

// It is off unless it is asked for, and gives up quietly where it cannot work.
func TestInformer_AuditThatCannotBeDoneIsQuiet_A6(t *testing.T) {
	for name, opts := range map[string]informer.Options{"off": {}, "on": {Audit: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			simulated(t, opts, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"))
				i := informer.For[cmap](w.factory)
				start(w)
				w.Deny("list", configMaps)
				pass(10 * time.Hour)
				s := stateOf(i)
				if s.Audits.Done != 0 || s.Audits.Differences != 0 || (s.Audits.Abandoned > 0) != (opts.Audit > 0) {
					t.Errorf("got %+v, want none done, and some given up only where they are asked for", s.Audits)
				}
				if n := w.logged(""); n != 0 {
					t.Errorf("%d lines of log, want none: %q", n, w.journal.lines)
				}
			})
		})
	}
}

func TestInformer_AuditOutlivesAScopeThatIsReleased_A6(t *testing.T) {
	for name, goes := range map[string]int{"compared now": 0, "compared next": 1} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{Audit: 10 * time.Minute}, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"))
				scopes := []*informer.SharedInformer[cmap]{
					informer.For[cmap](w.factory, informer.Scope{Namespaces: []string{"ns"}}),
					informer.For[cmap](w.factory, informer.Scope{Namespaces: []string{"ns"}, LabelSelector: "!none"}),
				}
				start(w)
				w.Network.Delay(10 * time.Second)
				for n := 0; w.asked("list", "/configmaps?") == 0; n++ {
					if n > 60*60 {
						t.Fatal("no audit has begun; this test tests nothing")
					}
					pass(time.Second)
				}
				// The server has the question, and nobody has its answer yet.
				scopes[goes].Release()
				stays := scopes[1-goes]
				pass(time.Hour)
				w.Store(configMap("a", "2"))
				pass(time.Hour)
				holds(t, stays, "a=2", "a release harms the scope that stays")
				if s := stateOf(stays); s.Audits.Done < 5 || s.Audits.Differences != 0 {
					t.Errorf("got %+v, want that the audits of the scope that stays go on", s.Audits)
				}
			})
		})
	}
}

func TestInformer_DoubledAndLateEventsAreHarmless_A7(t *testing.T) {
	for name, fault := range map[string]func(*world){
		"doubled":   func(w *world) { w.Duplicate(configMaps, 2) },
		"reordered": func(w *world) { w.Reorder(configMaps) },
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				w.Store(configMap("a", "1"), configMap("b", "1"))
				i := informer.For[cmap](w.factory)
				h := told(w, i)
				start(w)
				pass(time.Minute)
				h.next()
				fault(w)
				w.Store(configMap("a", "2"), configMap("a", "3"))
				holds(t, i, "a=3 b=1", "a late event took a newer state back")
				if got := h.next(); strings.Count(got, "a=3") != 1 || strings.Count(got, "a=2") > 1 {
					t.Errorf("told %q, want a=3 once, at the end", got)
				}
				// Of other keys, late events still count.
				fault(w)
				w.Store(configMap("a", "4"), configMap("c", "1"))
				holds(t, i, "a=4 b=1 c=1", "a late event is lost")
				// The watch goes on from the newest version, not the last one told.
				w.CloseWatches(configMaps)
				w.Store(configMap("b", "2"))
				pass(time.Minute)
				holds(t, i, "a=4 b=2 c=1", "the watch did not go on")
			})
		})
	}
}

func TestInformer_AnomaliesOfTheStreamAreCounted_A7(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"), configMap("b", "1"))
		i := informer.For[cmap](w.factory)
		start(w)
		counts := func(want state.Anomalies, meaning string) {
			t.Helper()
			if got := stateOf(i).Anomalies; got != want {
				t.Errorf("got %+v, want %+v: %s", got, want, meaning)
			}
		}
		w.Duplicate(configMaps, 2)
		w.Store(configMap("a", "2"), configMap("a", "3"))
		counts(state.Anomalies{Doubled: 2}, "an event came twice, and another")
		w.Duplicate(configMaps, 1)
		w.Delete(configMaps, "b")
		counts(state.Anomalies{Doubled: 3}, "a deletion came twice")
		w.Reorder(configMaps)
		w.Store(configMap("a", "4"), configMap("a", "5"))
		counts(state.Anomalies{Doubled: 3, Late: 1}, "an older state came after a newer one")
		w.Reorder(configMaps)
		w.Store(configMap("c", "1"), configMap("a", "6"))
		counts(state.Anomalies{Doubled: 3, Late: 1, Disordered: 1}, "the stream's versions fell")
		w.Reorder(configMaps)
		w.Store(configMap("a", "7"), configMap("a", "8"))
		for kind, want := range map[string]int{"is doubled": 1, "is late": 1, "is out of order": 1} {
			if n := w.logged(kind); n != want {
				t.Errorf("%d lines say that an event %s, want %d: the rest is only counted", n, kind, want)
			}
		}
		holds(t, i, "a=8 c=1", "an anomaly did harm")
	})
}

// A late event of an object whose end the stream has shown must not bring it
// back: nothing is held any more that it could be compared with.
func TestInformer_LateEventBringsNothingBackToLife_A7(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"), configMap("b", "1"))
		i := informer.For[cmap](w.factory)
		h := told(w, i)
		start(w)
		h.next()
		w.Reorder(configMaps)
		w.Store(configMap("a", "2"))
		w.Delete(configMaps, "a")
		pass(time.Minute)
		holds(t, i, "b=1", "an object that is gone came back by a late event")
		if got := h.next(); got != "deleted a=2" {
			t.Errorf("told %q, want its end alone", got)
		}
	})
}

// What is odd and yet sound is not counted: any order of a list, a watch that
// is opened again, an end, a name that comes again, an own write before its
// echo, a new epoch.
func TestInformer_SoundStreamHasNoAnomalies_A7(t *testing.T) {
	for name, opts := range map[string]informer.Options{"streaming": {}, "paged": {PagedLists: true, PageSize: 2}} {
		t.Run(name, func(t *testing.T) {
			simulated(t, opts, func(t *testing.T, w *world) {
				w.Store(configMap("c", "1"), configMap("b", "1"), configMap("a", "1"), configMap("c", "2"))
				i := informer.For[cmap](w.factory)
				start(w)
				for n := range 20 {
					w.Store(configMap("a", fmt.Sprint(n)), configMap(fmt.Sprintf("d-%d", n), "1"))
					w.writeOwn(i, "b", fmt.Sprint("own ", n))
					w.Delete(configMaps, fmt.Sprintf("d-%d", n))
					switch n % 5 {
					case 1:
						w.CloseWatches(configMaps)
					case 2:
						w.Network.Cut()
					case 3:
						w.RestartCache()
						w.Compact()
					}
					pass(40 * time.Second)
				}
				w.Rewind(2)
				pass(10 * time.Minute)
				w.Store(configMap("a", "after"), configMap("e", "1"))
				pass(time.Minute)
				if got := stateOf(i).Anomalies; got.Total() != 0 {
					t.Errorf("got %+v, want none: nothing was wrong with the stream; %q", got, w.journal.lines)
				}
				if got := held(i); !strings.Contains(got, "a=after") {
					t.Errorf("it holds %q, want a=after: the test did not reach its end", got)
				}
			})
		})
	}
}
