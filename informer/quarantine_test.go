// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// story plays the life of key a in a store: "u@1" is a decodable version,
// "!u@2" an undecodable one, "" an end.
func story(t *testing.T, steps ...string) (x *store.Indexer, changes [][]store.Change) {
	t.Helper()
	x = store.NewIndexer(fixture.ThingKind)
	var uid string
	for n, step := range steps {
		var v kube.Version
		d := seenAs(store.Updated, "a", "", 0)
		bad := len(step) > 0 && step[0] == '!'
		if step == "" {
			d.Type, d.UID, d.Version = store.Deleted, types.UID(uid), kube.Version(n+1)
			d.Object = nil
		} else {
			if _, err := fmt.Sscanf(step[len(step)-3:], "%1s@%d", &uid, &v); err != nil {
				t.Fatal(err)
			}
			d = deltaOf(fixture.NewThing(d.Key, types.UID(uid), v, ""))
			d.Type = store.Updated
			if bad {
				d.Metadata, d.Object, d.Err = d.Object.(*metav1.PartialObjectMetadata), nil, fixture.ErrSpoiled
			}
		}
		changes = append(changes, slices.Clone(mustApply(t, x, d)))
	}
	return x, changes
}

// tellUndecodable is tell with the undecodable objects.
func tellUndecodable(events []kube.Event[kube.Object]) []string {
	out := tell(events)
	for i, e := range events {
		if u := e.Undecodable; u != nil {
			out[i] += fmt.Sprintf(" bad %s@%s", u.UID, u.Metadata.ResourceVersion)
			if failed, ok := errors.AsType[*kube.UndecodableError](u.Err); !ok || failed.Key != e.Key {
				out[i] += " without its error"
			}
		}
	}
	return out
}

// What a handler with Undecodable receives for a key in quarantine, event by
// event and merged, and that other handlers receive none of it.
func TestBacklog_TellsWhoAsksOfTheUndecodable_I8(t *testing.T) {
	tests := []struct {
		name  string
		steps []string
		want  []string // event by event
		level []string // merged from the end of the first step
		deaf  []string // without Undecodable, event by event
	}{
		{"turns undecodable", []string{"u@1", "!u@2"},
			[]string{"added a to u@1", "undecodable a from u@1 bad u@2"},
			[]string{"undecodable a from u@1 bad u@2"},
			[]string{"added a to u@1"}},
		{"another undecodable version", []string{"!u@1", "!u@2"},
			[]string{"undecodable a bad u@1", "undecodable a bad u@2"},
			[]string{"undecodable a bad u@2"}, nil},
		{"heals", []string{"u@1", "!u@2", "u@3"},
			[]string{"added a to u@1", "undecodable a from u@1 bad u@2", "updated a from u@1 to u@3"},
			[]string{"updated a from u@1 to u@3"},
			[]string{"added a to u@1", "updated a from u@1 to u@3"}},
		{"heals for the first time", []string{"!u@1", "u@2"},
			[]string{"undecodable a bad u@1", "added a to u@2"},
			[]string{"added a to u@2"},
			[]string{"added a to u@2"}},
		{"heals, and not for long", []string{"u@1", "!u@2", "u@3", "!u@4"},
			[]string{"added a to u@1", "undecodable a from u@1 bad u@2", "updated a from u@1 to u@3", "undecodable a from u@3 bad u@4"},
			[]string{"updated a from u@1 to u@3", "undecodable a from u@3 bad u@4"},
			[]string{"added a to u@1", "updated a from u@1 to u@3"}},
		{"ends", []string{"u@1", "!u@2", ""},
			[]string{"added a to u@1", "undecodable a from u@1 bad u@2", "deleted a from u@1"},
			[]string{"deleted a from u@1"},
			[]string{"added a to u@1", "deleted a from u@1"}},
		{"ends, never decoded", []string{"!u@1", ""},
			[]string{"undecodable a bad u@1", "deleted a bad u@1"},
			[]string{"deleted a bad u@1"}, nil},
		{"another one takes its name", []string{"u@1", "!v@2"},
			[]string{"added a to u@1", "deleted a from u@1 unknown", "undecodable a bad v@2"},
			[]string{"deleted a from u@1 unknown", "undecodable a bad v@2"},
			[]string{"added a to u@1", "deleted a from u@1 unknown"}},
		{"another one takes its name, never decoded", []string{"!u@1", "v@2"},
			[]string{"undecodable a bad u@1", "deleted a unknown bad u@1", "added a to v@2"},
			[]string{"deleted a unknown bad u@1", "added a to v@2"},
			[]string{"added a to v@2"}},
		{"neither can be decoded", []string{"!u@1", "!v@2"},
			[]string{"undecodable a bad u@1", "deleted a unknown bad u@1", "undecodable a bad v@2"},
			[]string{"deleted a unknown bad u@1", "undecodable a bad v@2"}, nil},
		{"passes by", []string{"u@1", "", "!v@3", ""},
			[]string{"added a to u@1", "deleted a from u@1", "undecodable a bad v@3", "deleted a bad v@3"},
			[]string{"deleted a from u@1"},
			[]string{"added a to u@1", "deleted a from u@1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, changes := story(t, test.steps...)
			busy := newBacklog()
			busy.undecodable = true
			for kind, w := range map[string]func() waiting{
				"level-triggered": func() waiting { b := newBacklog(); b.undecodable = true; return b },
				"every event":     func() waiting { return &eventStream{undecodable: true} },
			} {
				queue := w()
				var got []string
				for _, batch := range changes {
					for _, c := range batch {
						queue.push(c, nil, false)
					}
					got = append(got, tellUndecodable(drain(queue))...)
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("%s:\n got %q\nwant %q", kind, got, test.want)
				}
			}
			deaf, every := newBacklog(), &eventStream{}
			var got, gotEvery []string
			for n, batch := range changes {
				for _, c := range batch {
					if n > 0 {
						busy.push(c, nil, false)
					}
					deaf.push(c, nil, false)
					every.push(c, nil, false)
				}
				got = append(got, tellUndecodable(drain(deaf))...)
				gotEvery = append(gotEvery, tellUndecodable(drain(every))...)
			}
			if got := tellUndecodable(drain(busy)); !slices.Equal(got, test.level) {
				t.Errorf("merged:\n got %q\nwant %q", got, test.level)
			}
			if !slices.Equal(got, test.deaf) || !slices.Equal(gotEvery, test.deaf) {
				t.Errorf("who has not asked:\n got %q\n and %q\nwant %q", got, gotEvery, test.deaf)
			}
		})
	}
}

// Above the bound, undecodable versions of a key merge like updates.
func TestEventStream_MergesUndecodableVersionsInABacklog(t *testing.T) {
	const below = 200
	s := newEventStream(HandlerOptions{BacklogBytes: below * store.EventBytes, Undecodable: true})
	for i := range below {
		s.push(became(fmt.Sprint(i), "", "u@1"), nil, false)
	}
	steps := []string{"u@1"}
	for i := range 7 {
		steps = append(steps, fmt.Sprintf("!u@%d", i+2))
	}
	_, changes := story(t, append(steps, "u@9")...)
	for _, batch := range changes {
		for _, c := range batch {
			s.push(c, nil, false)
		}
	}
	got := tellUndecodable(drain(s)[below:])
	if want := []string{"added a to u@1", "undecodable a from u@1 bad u@8", "updated a from u@1 to u@9"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// With another filter, undecodable objects appear and disappear by that filter.
func TestIndexer_UndecodableComesAndGoesWithTheSight_I8(t *testing.T) {
	for name, steps := range map[string][]string{
		"known before":  {"u@1", "!u@2"},
		"never decoded": {"!u@2"},
	} {
		x, _ := story(t, steps...)
		for _, asks := range []bool{false, true} {
			var got []string
			for _, sights := range [][2]*store.ScopeSet{{store.ScopesOf(1), store.ScopesOf(0)}, {store.ScopesOf(0), store.ScopesOf(1)}} {
				b := newBacklog()
				b.undecodable = asks
				for c := range x.SeenDifferently(sights[0], sights[1]) {
					b.push(c, nil, false)
				}
				got = append(got, tellUndecodable(drain(b))...)
			}
			want := map[string][]string{
				"known before false":  {"added a to u@1", "deleted a from u@1 left"},
				"known before true":   {"added a to u@1", "undecodable a from u@1 bad u@2", "deleted a from u@1 left"},
				"never decoded false": nil,
				"never decoded true":  {"undecodable a bad u@2", "deleted a left bad u@2"},
			}[fmt.Sprintf("%s %v", name, asks)]
			if !slices.Equal(got, want) {
				t.Errorf("%s, asks %v: told %q, want %q", name, asks, got, want)
			}
		}
	}
}

// Undecodable lists what the scopes hold, sorted, at one moment.
func TestLister_ListsTheQuarantine_I8(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	bad := func(scope base.ScopeID, name string, v kube.Version) store.Delta {
		d := deltaOf(fixture.Spoilt(fixture.NewThing(fixture.Named(name), "u", v, "")))
		d.Type, d.Scope = store.Updated, scope
		return d
	}
	mustApply(t, x, bad(0, "b", 1), bad(0, "a", 2), bad(1, "c", 3), seenDelta("good", "g", 4, ""))
	list := func(l Lister[kube.Object]) (out []string) {
		for u := range l.Undecodable() {
			failed, ok := errors.AsType[*kube.UndecodableError](u.Err)
			if !ok || failed.Key != u.Key || !errors.Is(u.Err, fixture.ErrSpoiled) || u.Since.IsZero() {
				t.Errorf("%s has the error %v since %v, want an *UndecodableError with its key and cause", u.Key, u.Err, u.Since)
			}
			out = append(out, fmt.Sprintf("%s %s@%s %s", u.Key.Name, u.UID, u.Version, u.Metadata.Name))
			mustApply(t, x, seenDelta(u.Key.Name, "u", 9, "")) // heals while it is listed
		}
		return out
	}
	if got, want := list(listerOf(x, &listerView{scopes: store.ScopesOf(0)})), []string{"a u@2 a", "b u@1 b"}; !slices.Equal(got, want) {
		t.Errorf("one scope lists %q, want %q", got, want)
	}
	if got, want := list(listerOf(x, &listerView{})), []string{"c u@3 c"}; !slices.Equal(got, want) {
		t.Errorf("after the others have healed %q are listed, want %q", got, want)
	}
	if got := list(Lister[kube.Object]{}); got != nil {
		t.Errorf("an empty Lister lists %q", got)
	}
}
