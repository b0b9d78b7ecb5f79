// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate"
)

// mode is what a widget of the store has as its mode.
func mode(w *world, i *informer.SharedInformer[*widget], name string) string {
	w.T.Helper()
	obj, err := i.Lister().Get(key(name))
	w.Must(err)
	return obj.Mode
}

func TestInformer_ChangedSchemaListsTheKindAnew_A9(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  informer.Options
		after time.Duration // the start; its watches live
		late  time.Duration // until the change is published
		gone  bool          // the history of watches goes with it
	}{
		{"published at once", informer.Options{}, time.Minute, 0, false},
		{"published after the watch has ended", informer.Options{PagedLists: true, PageSize: 2}, time.Minute, 1500 * time.Millisecond, false},
		{"published late, as by an aggregated API", informer.Options{}, 4 * time.Minute, time.Minute, false},
		{"before anybody knows the schema", informer.Options{}, 2 * time.Second, 0, false},
		{"with the history of watches", informer.Options{}, time.Minute, 0, true},
		{"with the history of watches, by pages", informer.Options{PagedLists: true, PageSize: 2}, time.Minute, time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulated(t, c.opts, func(t *testing.T, w *world) {
				slow := newWidget("b", "1")
				slow.Mode = "slow"
				w.Store(newWidget("a", "1"), slow, configMap("m", "1"))
				i, other := informer.For[*widget](w.factory), informer.For[cmap](w.factory)
				informer.For[*widget](w.factory, informer.Scope{Namespaces: []string{"ns"}})
				h := told(w, i)
				start(w)
				pass(c.after)
				h.next()
				w.PublishSchemasAfter(c.late)
				w.Store(configMap("n", "1"))
				reason := "schema changed"
				if c.gone { // before the change ends the watches, or one may be opened again in between
					reason = "expired"
					w.ForgetHistory(widgets)
				}
				w.Must(w.ChangeSchema(widgets, map[string]any{"mode": "fast"}))
				pass(5 * time.Minute)
				if got := mode(w, i, "a"); got != "fast" {
					t.Errorf("mode is %q, want \"fast\": a default of the new schema is not seen", got)
				}
				if got := mode(w, i, "b"); got != "slow" {
					t.Errorf("mode is %q, want \"slow\": it was set", got)
				}
				if got := h.next(); got != "updated a=1" {
					t.Errorf("told %q, want a=1 once: what is equal is no news, and two scopes are one informer", got)
				}
				for _, s := range i.Snapshot().Scopes {
					if len(s.Relists) != 1 || s.Relists[reason] != 1 {
						t.Errorf("%s was listed anew %v, want once: %s", s.Scope, s.Relists, reason)
					}
				}
				if n := w.lists(configMaps); n != 1 {
					t.Errorf("%d lists of another kind, want 1: its schema is the same", n)
				}
				if s := stateOf(other); s.State != state.Live {
					t.Errorf("another kind is %s", s)
				}
			})
		})
	}
}

// Metadata does not show that the rest of an object has changed, so the handlers get each object
// again: over a watch of its own, and over that of an informer of the whole objects.
func TestInformer_ChangedSchemaWakesInformersOfMetadata_A9(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, gone := range []bool{false, true} { // the history of watches, with the schema
			simulated(t, informer.Options{}, func(t *testing.T, w *world) {
				w.Store(newWidget("a", "1"), newWidget("b", "1"))
				if shared {
					informer.For[*widget](w.factory)
				}
				i := informer.ForMetadata(w.factory, widgetKind.GroupVersionKind)
				var told []string
				_, err := i.AddHandler(func(e kube.Event[*metav1.PartialObjectMetadata]) {
					told = append(told, fmt.Sprintf("%s %s %t", e.Type, e.Key.Name, e.Resync))
				}, informer.HandlerOptions{})
				w.Must(err)
				start(w)
				pass(time.Minute)
				told = nil
				if gone {
					w.ForgetHistory(widgets)
				}
				w.Must(w.ChangeSchema(widgets, map[string]any{"mode": "fast"}))
				pass(5 * time.Minute)
				slices.Sort(told)
				if want := []string{"updated a true", "updated b true"}; !slices.Equal(told, want) {
					t.Errorf("shared %t, history gone %t: told %q, want %q: the objects have changed, though their metadata has not", shared, gone, told, want)
				}
				told = nil
				w.CloseWatches(widgets)
				pass(5 * time.Minute)
				if len(told) != 0 {
					t.Errorf("shared %t, history gone %t: told %q after a watch that ended with the same schema, want nothing", shared, gone, told)
				}
			})
		}
	}
}

// What this process has written meanwhile is newer than what a list compares.
func TestInformer_ChangedSchemaUndoesNoOwnWrite_A9(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(newWidget("a", "1"))
		i := informer.For[*widget](w.factory)
		start(w)
		pass(time.Minute)
		was, err := i.Lister().Get(key("a"))
		w.Must(err)
		w.Must(w.ChangeSchema(widgets, map[string]any{"mode": "fast"}))
		own := newWidget("a", "own")
		own.Mode = "own"
		own.UID = was.UID
		own.ResourceVersion = "1000"
		w.factory.Observe(kube.Written{Effect: kube.Stored, Kind: widgetKind.GroupVersionKind, Key: key("a"), UID: own.UID, Version: 1000, Object: own})
		pass(time.Minute)
		if n := stateOf(i).Relists["schema changed"]; n != 1 {
			t.Fatalf("%d lists for the schema, want 1; this test tests nothing", n)
		}
		if got := mode(w, i, "a"); got != "own" {
			t.Errorf("mode is %q, want \"own\": a list took a newer own write back", got)
		}
	})
}

// A watch that ends early for another reason is no reason for a list, and
// however often watches end, the server is not asked for its schemas more often
// than a few times a minute.
func TestInformer_EarlyEndsAreNoListsWithoutAnotherSchema_A9(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(newWidget("a", "1"), configMap("m", "1"))
		i, other := informer.For[*widget](w.factory), informer.For[cmap](w.factory)
		start(w)
		pass(time.Minute)
		for range 50 {
			w.CloseWatches(widgets)
			w.Network.Cut()
			pass(time.Minute + 10*time.Second) // enough for a bookmark
		}
		if n, m := w.lists(widgets), w.lists(configMaps); n+m != 2 {
			t.Errorf("%d and %d lists, want one of each kind: no schema has changed; %s, %s", n, m, stateOf(i), stateOf(other))
		}
		if n := w.asked("get", "/openapi/v3"); n < 10 || n > 130 {
			t.Errorf("%d requests for the schemas in an hour, want some, and two a minute at most", n)
		}
		// A change of one kind while the network is away is found as well.
		w.Network.Refuse(true)
		w.Network.Cut()
		w.Must(w.ChangeSchema(widgets, map[string]any{"mode": "fast"}))
		pass(time.Minute)
		w.Network.Refuse(false)
		pass(10 * time.Minute)
		if got := mode(w, i, "a"); got != "fast" {
			t.Errorf("mode is %q, want \"fast\": the schema changed while the server could not be reached", got)
		}
		if n := w.lists(configMaps); n != 1 {
			t.Errorf("%d lists of another kind, want 1", n)
		}
	})
}

// An upgrade of the server changes the defaults of built-in kinds.
func TestInformer_UpgradedServerIsComparedByContent_A9(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(newWidget("a", "1"), configMap("m", "1"))
		i, other := informer.For[cmap](w.factory), informer.For[*widget](w.factory)
		h := told(w, i)
		start(w)
		pass(time.Hour)
		h.next()
		w.Must(w.Upgrade("v1.38.0+simulated", map[schema.GroupResource]map[string]any{configMaps: {"immutable": true}}))
		pass(5 * time.Minute)
		obj, err := i.Lister().Get(key("m"))
		w.Must(err)
		if obj.Immutable == nil || !*obj.Immutable {
			t.Error("a default of the new server is not seen")
		}
		if got := h.next(); got != "updated m=1" {
			t.Errorf("told %q, want m=1 once", got)
		}
		if n := stateOf(other).Relists["schema changed"]; n != 0 {
			t.Errorf("a kind whose schema is the same was listed %d times", n)
		}
	})
}

func TestInformer_SchemasThatAreForbiddenCostNothing_A9(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.ForbidSchemas(true)
		w.Store(newWidget("a", "1"))
		i := informer.For[*widget](w.factory)
		start(w)
		for range 10 {
			pass(time.Minute)
			w.Must(w.ChangeSchema(widgets, map[string]any{"mode": "fast"}))
		}
		if n := w.asked("get", "/openapi/v3"); n != 1 {
			t.Errorf("%d requests for the schemas in ten minutes, want 1: they are forbidden", n)
		}
		if n := w.lists(widgets); n != 1 {
			t.Errorf("%d lists, want 1: nothing is known to have changed", n)
		}
		if n := w.logged("does not publish its schemas"); n != 0 {
			t.Errorf("%d lines of log, want none at this level: %q", n, w.journal.lines)
		}
		// The right is given, and an hour has passed.
		w.ForbidSchemas(false)
		pass(time.Hour)
		w.Must(w.ChangeSchema(widgets, map[string]any{"mode": "faster"}))
		pass(time.Minute)
		w.Must(w.ChangeSchema(widgets, map[string]any{"mode": "fastest"}))
		pass(5 * time.Minute)
		if got := mode(w, i, "a"); got != "fastest" {
			t.Errorf("mode is %q, want \"fastest\": nobody looks any more", got)
		}
	})
}

// A watch that the change ends seconds before its time looks nearly as one that
// has had its time.
func TestInformer_SchemaThatChangesAtTheEndOfAWatchIsSeen_A9(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(newWidget("a", "1"))
		i := informer.For[*widget](w.factory)
		start(w)
		watch := slices.IndexFunc(w.Served(), func(r simulate.Served) bool {
			return strings.HasSuffix(r.Path, "/widgets") && strings.Contains(r.Query, "sendInitialEvents=true")
		})
		asked := w.Served()[watch]
		query, err := url.ParseQuery(asked.Query)
		w.Must(err)
		timeout, err := time.ParseDuration(query.Get("timeoutSeconds") + "s")
		w.Must(err)
		pass(time.Until(asked.At.Add(timeout - time.Second)))
		w.Must(w.ChangeSchema(widgets, map[string]any{"mode": "fast"}))
		pass(time.Minute)
		if got := mode(w, i, "a"); got != "fast" {
			t.Errorf("mode is %q, want \"fast\": the end of the watch was taken for its timeout", got)
		}
	})
}

func TestInformer_ChangedSchemaEndsNoWatchForLong_A9(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(newWidget("a", "1"))
		i := informer.For[*widget](w.factory)
		start(w)
		pass(time.Minute)
		w.Must(w.ChangeSchema(widgets, map[string]any{"mode": "fast"}))
		changed := newWidget("a", "2")
		w.Store(changed, newWidget("b", "1"))
		pass(2 * time.Second)
		holds(t, i, "a=2 b=1", "the watch was not opened again")
		if obj, err := i.Lister().Get(key("a")); err != nil || obj.Mode != "fast" {
			t.Errorf("got %+v, %v; want mode fast with the object's next version", obj, err)
		}
	})
}
