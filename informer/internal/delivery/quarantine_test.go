// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
		d := store.Delta{Type: store.Updated, Key: fixture.Named("a")}
		bad := len(step) > 0 && step[0] == '!'
		if step == "" {
			d.Type, d.UID, d.Version = store.Deleted, types.UID(uid), kube.Version(n+1)
			d.Object = nil
		} else {
			if _, err := fmt.Sscanf(step[len(step)-3:], "%1s@%d", &uid, &v); err != nil {
				t.Fatal(err)
			}
			d = store.Delta{Key: d.Key, UID: types.UID(uid), Version: v, Object: fixture.NewThing(d.Key, types.UID(uid), v, "")}
			d.Type = store.Updated
			if bad {
				d.Metadata, d.Object, d.Err = d.Object.(*metav1.PartialObjectMetadata), nil, fixture.ErrSpoiled
			}
		}
		told, err := x.Apply(store.Batch{Deltas: []store.Delta{d}})
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, slices.Clone(told))
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
			for kind, w := range map[string]func() Backlog{
				"level-triggered": func() Backlog { b := newBacklog(); b.undecodable = true; return b },
				"every event":     func() Backlog { return &eventStream{undecodable: true} },
			} {
				queue := w()
				var got []string
				for _, batch := range changes {
					for _, c := range batch {
						queue.Push(c, nil, false)
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
						busy.Push(c, nil, false)
					}
					deaf.Push(c, nil, false)
					every.Push(c, nil, false)
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
	s := newEventStream(Options{BacklogBytes: below * store.EventBytes, Undecodable: true})
	for i := range below {
		s.Push(became(fmt.Sprint(i), "", "u@1"), nil, false)
	}
	steps := []string{"u@1"}
	for i := range 7 {
		steps = append(steps, fmt.Sprintf("!u@%d", i+2))
	}
	_, changes := story(t, append(steps, "u@9")...)
	for _, batch := range changes {
		for _, c := range batch {
			s.Push(c, nil, false)
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
					b.Push(c, nil, false)
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
