// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/informer"
)

// overtaken has the store go back while i cannot see it, from "a=2 b=1 c=1" to
// "a=1 b=1", and move on until it is past what i saw.
func overtaken(t *testing.T, w *world, i *informer.SharedInformer[cmap]) {
	t.Helper()
	w.Store(configMap("a", "2"), configMap("c", "1"))
	pass(2 * time.Minute)
	holds(t, i, "a=2 b=1 c=1", "it has not synced")
	restored(w, 2, newWidget)
	w.Network.Delay(5 * time.Second) // the read after the broken connection is given up
	pass(time.Minute)
	w.Network.Delay(0)
	pass(time.Minute)
}

// restored has the store go back by some revisions while nobody can see it, and move on past
// them with other objects.
func restored[T runtime.Object](w *world, back int, other func(name, value string) T) {
	w.Network.Refuse(true)
	w.Network.Cut()
	w.Rewind(back)
	for n := range 10 {
		w.Store(other("other", fmt.Sprint(n)))
	}
	w.Network.Refuse(false)
}

// A store that went back and has overtaken the watch again cannot be told from a
// sound one by its versions. Its objects can: an audit proves it.
func TestInformer_AuditFindsARewindThatWasOvertaken_A20(t *testing.T) {
	simulated(t, informer.Options{Audit: 2 * time.Hour}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"), configMap("b", "1"))
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
		w.Store(configMap("a", "3"))
		pass(time.Second)
		holds(t, i, "a=3 b=1", "the informer does not follow the restored store")
	})
}

// Where the read after the broken connection was not answered, the next list finds it,
// whatever it is asked for.
func TestInformer_ListFindsARewindThatWasOvertaken_A28(t *testing.T) {
	for _, paged := range []bool{false, true} {
		simulated(t, informer.Options{PagedLists: paged}, func(t *testing.T, w *world) {
			w.Store(configMap("a", "1"), configMap("b", "1"))
			i := informer.For[cmap](w.factory)
			h := told(w, i)
			start(w)
			overtaken(t, w, i)
			holds(t, i, "a=2 b=1 c=1", "the rewind shows without a list; this test tests nothing")
			h.next()
			w.Network.Refuse(true)
			w.Network.Cut()
			for n := range 10 {
				w.Store(newWidget("later", fmt.Sprint(n)))
			}
			w.Compact()
			w.Network.Refuse(false)
			pass(2 * time.Minute)
			holds(t, i, "a=1 b=1", "what was undone stays")
			if got := h.next(); len(got) != len("updated a=1, updated b=1, deleted c=1") {
				t.Errorf("told %q, want each object once", got)
			}
			if s := stateOf(i); s.Audits.Rewinds != 1 || s.Relists["objects in older versions"] != 2 || w.logged("went back") != 2 {
				t.Errorf("got %+v, relists %v, log %q; want one rewind, proved by a second list and taken by a third", s.Audits, s.Relists, w.journal.lines)
			}
			w.Store(configMap("a", "3"))
			pass(time.Second)
			holds(t, i, "a=3 b=1", "the informer does not follow the restored store")
		})
	}
}

// Without audits and lists, one read after the broken connection finds it.
func TestInformer_BrokenConnectionFindsARewindThatWasOvertaken_A39(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"), configMap("b", "1"))
		i := informer.For[cmap](w.factory)
		h := told(w, i)
		start(w)
		w.Store(configMap("a", "2"), configMap("c", "1"))
		pass(2 * time.Minute)
		h.next()
		restored(w, 2, newWidget)
		pass(2 * time.Minute)
		holds(t, i, "a=1 b=1", "what was undone stays")
		if s := stateOf(i); s.Audits.Rewinds != 1 {
			t.Errorf("got %+v, relists %v; want one rewind", s.Audits, s.Relists)
		}
		lists, recalls := w.lists(configMaps), w.recalls(configMaps)
		w.Network.Cut()
		pass(2 * time.Minute)
		w.CloseWatches(configMaps)
		pass(2 * time.Minute)
		if n, m := w.lists(configMaps)-lists, w.recalls(configMaps)-recalls; n != 0 || m != 1 {
			t.Errorf("%d lists and %d reads after a broken connection and a clean end with the same history, want one read for the first", n, m)
		}
	})
}

// A restored history that never had the object of the newest deletion does not show that: the
// newest object that is still known does.
func TestInformer_BrokenConnectionFindsARewindBehindADeletion_A39(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(configMap("a", "1"), configMap("b", "1"))
		i := informer.For[cmap](w.factory)
		start(w)
		w.Store(configMap("a", "2"), configMap("c", "1"), configMap("d", "1"))
		w.Delete(configMaps, "d")
		pass(2 * time.Minute)
		holds(t, i, "a=2 b=1 c=1", "it has not synced")
		lists, recalls := w.lists(configMaps), w.recalls(configMaps)
		w.Network.Cut()
		pass(2 * time.Minute)
		if n, m := w.lists(configMaps)-lists, w.recalls(configMaps)-recalls; n != 0 || m != 2 {
			t.Errorf("%d lists and %d reads after a broken connection with the same history, want a read of d and of c", n, m)
		}
		restored(w, 4, newWidget)
		pass(2 * time.Minute)
		holds(t, i, "a=1 b=1", "what was undone stays")
	})
}

// A server that refuses the exact version proves nothing: no list is demanded.
func TestInformer_RefusedRecallIsNoList_A39(t *testing.T) {
	refusals := map[string]string{
		"compacted": `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`,
		"lagging":   `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","message":"Too large resource version","details":{"causes":[{"reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1},"code":504}`,
		"other":     `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`,
	}
	for name, body := range refusals {
		t.Run(name, func(t *testing.T) {
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				m, asked := w.interposed(informer.Options{}), 0
				i := informer.For[cmap](w.factory)
				start(w)
				w.Store(configMap("a", "1"))
				pass(2 * time.Minute)
				m.meddle(func(req *http.Request) (*http.Response, error) {
					if req.URL.Query().Get("resourceVersionMatch") != "Exact" {
						return nil, nil
					}
					asked++
					code := map[string]int{"compacted": 410, "lagging": 504, "other": 200}[name]
					return answered(req, code, "application/json", strings.NewReader(body)), nil
				})
				lists := w.lists(configMaps)
				w.Network.Cut()
				pass(2 * time.Minute)
				if n := w.lists(configMaps) - lists; asked != 1 || n != 0 {
					t.Errorf("%d reads, %d lists; want one read that proves nothing", asked, n)
				}
				holds(t, i, "a=1", "a refused read changes nothing")
			})
		})
	}
}

func TestInformer_BrokenConnectionFindsARewindOfUnstructured_A39(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(newWidget("a", "1"))
		i := informer.ForKind(w.factory, widgetKind.GroupVersionKind)
		start(w)
		w.Store(newWidget("b", "1"))
		pass(2 * time.Minute)
		restored(w, 1, configMap)
		pass(2 * time.Minute)
		var names []string
		for obj := range i.Lister().All() {
			names = append(names, obj.GetName())
		}
		if fmt.Sprint(names) != "[a]" {
			t.Errorf("got %v, want [a]: what was undone is gone", names)
		}
	})
}

// An outage of a server with many scopes is followed by one read of each, a few at a time.
func TestInformer_RecallsOfManyScopesAreRamped_A39(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		const kinds, most = 200, 4
		var underWay, highest, asked atomic.Int64
		m := w.interposed(informer.Options{})
		w.manyKinds("many.example.com", kinds)
		start(w)
		pass(time.Minute)
		for k := range kinds {
			w.Store(thing(k))
		}
		pass(2 * time.Minute)
		m.meddle(func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Get("resourceVersionMatch") == "Exact" {
				asked.Add(1)
				highest.Store(max(highest.Load(), underWay.Add(1)))
				time.Sleep(10 * time.Millisecond)
				underWay.Add(-1)
			}
			return nil, nil
		})
		w.Network.Refuse(true)
		w.Network.Cut()
		pass(time.Minute)
		w.Network.Refuse(false)
		pass(2 * time.Minute)
		if n := asked.Load(); n != kinds || highest.Load() > most {
			t.Errorf("%d reads of %d scopes, %d at a time; want one each, %d at a time", n, kinds, highest.Load(), most)
		}
	})
}

func thing(k int) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("many.example.com/v1")
	obj.SetKind(fmt.Sprintf("Thing%03d", k))
	obj.SetNamespace("ns")
	obj.SetName("a")
	return obj
}
