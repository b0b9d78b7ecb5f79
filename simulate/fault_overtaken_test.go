// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer"
)

// overtaken has the store go back while i cannot see it, from "a=2 b=1 c=1" to
// "a=1 b=1", and move on until it is past what i saw.
func overtaken(t *testing.T, w *world, i *informer.SharedInformer[cmap]) {
	t.Helper()
	w.put(configMap("a", "2"), configMap("c", "1"))
	pass(2 * time.Minute)
	holds(t, i, "a=2 b=1 c=1", "it has not synced")
	w.network.Refuse(true)
	w.network.Cut()
	w.Rewind(2)
	for n := range 10 {
		w.put(newWidget("other", fmt.Sprint(n)))
	}
	w.network.Refuse(false)
	w.network.Delay(5 * time.Second) // the read after the broken connection is given up
	pass(time.Minute)
	w.network.Delay(0)
	pass(time.Minute)
}

// A store that went back and has overtaken the watch again cannot be told from a
// sound one by its versions. Its objects can: an audit proves it.
func TestInformer_AuditFindsARewindThatWasOvertaken_A20(t *testing.T) {
	simulated(t, informer.Options{Audit: 2 * time.Hour}, func(t *testing.T, w *world) {
		w.put(configMap("a", "1"), configMap("b", "1"))
		i := informer.For[cmap](w.factory)
		h := told(w, i)
		start(w)
		overtaken(t, w, i)
		holds(t, i, "a=2 b=1 c=1", "the rewind shows without an audit; this test tests nothing")
		h.next()
		pass(4 * time.Hour)
		holds(t, i, "a=1 b=1", "what was undone stays")
		if got := h.next(); len(got) != len("updated a=1, updated b=1, deleted c=1") {
			t.Errorf("told %q, want each object once", got)
		}
		if s := stateOf(i); s.Audits.Rewinds != 1 || s.Audits.Repaired != 2 || w.logged("went back") != 2 {
			t.Errorf("got %+v and log %q; want one rewind of two objects, and that it was said", s.Audits, w.journal.lines)
		}
		w.put(configMap("a", "3"))
		pass(time.Second)
		holds(t, i, "a=3 b=1", "the informer does not follow the restored store")
	})
}

// Where the read after the broken connection was not answered, the next list finds it, whatever it is asked for.
func TestInformer_ListFindsARewindThatWasOvertaken_A28(t *testing.T) {
	for _, paged := range []bool{false, true} {
		simulated(t, informer.Options{PagedLists: paged}, func(t *testing.T, w *world) {
			w.put(configMap("a", "1"), configMap("b", "1"))
			i := informer.For[cmap](w.factory)
			h := told(w, i)
			start(w)
			overtaken(t, w, i)
			holds(t, i, "a=2 b=1 c=1", "the rewind shows without a list; this test tests nothing")
			h.next()
			w.network.Refuse(true)
			w.network.Cut()
			for n := range 10 {
				w.put(newWidget("later", fmt.Sprint(n)))
			}
			w.Compact()
			w.network.Refuse(false)
			pass(2 * time.Minute)
			holds(t, i, "a=1 b=1", "what was undone stays")
			if got := h.next(); len(got) != len("updated a=1, updated b=1, deleted c=1") {
				t.Errorf("told %q, want each object once", got)
			}
			if s := stateOf(i); s.Audits.Rewinds != 1 || s.Relists["objects in older versions"] != 2 || w.logged("went back") != 2 {
				t.Errorf("got %+v, relists %v, log %q; want one rewind, proved by a second list and taken by a third", s.Audits, s.Relists, w.journal.lines)
			}
			w.put(configMap("a", "3"))
			pass(time.Second)
			holds(t, i, "a=3 b=1", "the informer does not follow the restored store")
		})
	}
}

// Without audits and lists, one read after the broken connection finds it.
func TestInformer_BrokenConnectionFindsARewindThatWasOvertaken_A33(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.put(configMap("a", "1"), configMap("b", "1"))
		i := informer.For[cmap](w.factory)
		h := told(w, i)
		start(w)
		w.put(configMap("a", "2"), configMap("c", "1"))
		pass(2 * time.Minute)
		h.next()
		w.network.Refuse(true)
		w.network.Cut()
		w.Rewind(2)
		for n := range 10 {
			w.put(newWidget("other", fmt.Sprint(n)))
		}
		w.network.Refuse(false)
		pass(2 * time.Minute)
		holds(t, i, "a=1 b=1", "what was undone stays")
		if s := stateOf(i); s.Audits.Rewinds != 1 {
			t.Errorf("got %+v, relists %v; want one rewind", s.Audits, s.Relists)
		}
		lists, recalls := w.lists(configMaps), w.recalls(configMaps)
		w.network.Cut()
		pass(2 * time.Minute)
		w.CloseWatches(configMaps)
		pass(2 * time.Minute)
		if n, m := w.lists(configMaps)-lists, w.recalls(configMaps)-recalls; n != 0 || m != 1 {
			t.Errorf("%d lists and %d reads after a broken connection and a clean end with the same history, want one read for the first", n, m)
		}
	})
}
