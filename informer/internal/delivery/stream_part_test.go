// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

func updatesOf(n int) (changes []store.Change, want []string) {
	for i := range n {
		name := fmt.Sprint("object-", i)
		changes = append(changes, became(name, "u@1", "u@2"))
		want = append(want, "updated "+name+" from u@1 to u@2")
	}
	return changes, want
}

// Handlers with the same view of a batch share its events, each with its own
// position.
func TestEventStream_HandlersShareTheEventsOfABatch(t *testing.T) {
	changes, want := updatesOf(3*partEvents + 1)
	shared := Share(changes, 3, 0)
	var streams [3]*eventStream
	for i := range streams {
		streams[i] = newEventStream(Options{})
		streams[i].Clock(uint32(10 * i))
		c := shared.events(store.ScopesOf(0), false, false) // of another handle, hence a different set with the same scopes
		if c == nil || !streams[i].join(c) {
			t.Fatal("the events of a whole batch are not shared")
		}
	}
	if len(shared.made) != 1 {
		t.Errorf("the events were made %d times, want once for all three", len(shared.made))
	}
	first, _ := streams[0].Take(nil)
	if other, _ := streams[1].Take(nil); &first[0] != &other[0] || len(first) != partEvents {
		t.Errorf("two handlers were given different memory, or not a part of %d but %d", partEvents, len(first))
	}
	later, _ := updatesOf(1)
	streams[2].Push(later[0], nil, false)
	for i, s := range streams {
		if at, ok := s.Oldest(); !ok || at != uint32(10*i) {
			t.Errorf("handler %d: the oldest is of %d (%v), want %d: it has waited since this handler got it", i, at, ok, 10*i)
		}
		told := tell(drain(s))
		if i < 2 {
			told = append(tell(first), told...)
		} else if told = told[:len(told)-1]; s.Len() != 0 {
			t.Errorf("%d wait after all was given", s.Len())
		}
		if !slices.Equal(told, want) {
			t.Errorf("handler %d was told %d events, want the %d of the batch in their order", i, len(told), len(want))
		}
		if bytes, _ := s.Size(); bytes != 0 {
			t.Errorf("handler %d: %d bytes wait after all was given", i, bytes)
		}
	}
}

// A handler with another view, or that may have to merge, has its own events.
func TestEventStream_SharesOnlyWhatIsTheSame(t *testing.T) {
	changes, want := updatesOf(sharedFrom)
	shared := Share(changes, 2, 0)
	all := shared.events(nil, false, false)
	for _, other := range []*common{shared.events(store.ScopesOf(1), false, false), shared.events(nil, true, false), shared.events(nil, false, true)} {
		if other == all {
			t.Error("handlers share events though they see through another filter, ask for what cannot be decoded, or are still at the initial objects")
		}
	}
	if c := Share(changes[1:], 2, 0).events(nil, false, false); c != nil {
		t.Error("a few events are shared, which costs more than copies")
	}
	if c := Share(changes, 1, 0).events(nil, false, false); c != nil {
		t.Error("a lone handler shares")
	}
	changes[3].Resync = true
	if c := Share(changes, 2, 0).events(nil, false, false); c != nil {
		t.Error("what is given again to one handler is shared with all")
	}

	bound := newEventStream(Options{BacklogBytes: 4 * (store.EventBytes + store.UnknownBytes)})
	if bound.join(all) {
		t.Error("a batch was taken whole that passes the bound")
	}
	for range 3 {
		for _, c := range changes[:3] {
			bound.Push(c, nil, false)
		}
	}
	if bound.limit = -1; bound.join(all) {
		t.Error("a batch was taken though updates of its keys wait that merge")
	}
	drain(bound)
	if bound.Take(nil); !bound.join(all) || !slices.Equal(tell(drain(bound)), want) {
		t.Error("a handler that has caught up does not share again")
	}
}

func TestEventStream_SharedEventsAreMadeOnceForAllHandlers(t *testing.T) {
	changes, _ := updatesOf(store.BatchLimit)
	for _, handlers := range []int{2, 10, 100} {
		streams := make([]*eventStream, handlers)
		for i := range streams {
			streams[i] = newEventStream(Options{})
		}
		got := testing.AllocsPerRun(20, func() {
			shared := Share(changes, handlers, 0)
			for _, s := range streams {
				s.join(shared.events(nil, false, false))
			}
			for _, s := range streams {
				for s.Len() > 0 {
					s.Take(nil)
				}
			}
		})
		// Two per part, where the first grows; a few for all parts.
		if most := float64(2*store.BatchLimit/partEvents + 16); got > most {
			t.Errorf("%d handlers: %.0f allocations for %d events, want at most %.0f whatever the number of handlers", handlers, got, store.BatchLimit, most)
		}
	}
}

// A single handler that keeps up allocates nothing per event.
func TestEventStream_ReusesThePartOfAHandlerThatKeepsUp(t *testing.T) {
	changes, _ := updatesOf(partEvents)
	s := newEventStream(Options{})
	got := testing.AllocsPerRun(20, func() {
		for _, c := range changes {
			s.Push(c, nil, false)
		}
		for s.Len() > 0 {
			s.Take(nil)
		}
	})
	if got != 0 {
		t.Errorf("%.0f allocations for %d events, want none", got, len(changes))
	}
}

func TestListener_BacklogCountsWhatIsTakenAndNotYetGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, n := make(chan struct{}), 0
		l := New(func(kube.Event[kube.Object]) {
			if n++; n == 3 {
				<-hold
			}
		}, Options{EveryEvent: true}, nil)
		defer listening(t, l)()
		changes, _ := updatesOf(10)
		l.Push(changes, Share(changes, 2, 0))
		synctest.Wait()
		if s := l.Snapshot(); s.Backlog != 7 || s.Delivered != 3 || s.BacklogBytes != 7*(store.EventBytes+store.UnknownBytes) {
			t.Errorf("the third of ten calls runs; the backlog is %d of %d bytes, %d delivered, want 7 and 3", s.Backlog, s.BacklogBytes, s.Delivered)
		}
		l.Remove()
		close(hold)
		synctest.Wait()
		if s := l.Snapshot(); n != 3 || s.Backlog != 0 {
			t.Errorf("%d calls, backlog %d; want no call after the removal, and nothing that waits", n, s.Backlog)
		}
	})
}
