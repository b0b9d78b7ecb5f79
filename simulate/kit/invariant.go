// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"maps"
	"slices"
)

// invariants must hold in every run. Each is a pure function of the history.
var invariants = []struct {
	name  string
	holds func(*History) []Violation
}{
	{"V1", cacheEqualsServer},
	{"V2", cacheIsAPastState},
	{"V3", nothingGoesBack},
	{"V4", everyChangeIsReconciled},
	{"V5", oneWorkerPerKey},
	{"V6", queueKeepsItsWord},
	{"V28", keptOnceMade},       // before V7, which it explains
	{"V27", outputFollowsInput}, // before V7 and V24, which it explains
	{"V7", restIsRest},
	{"V8", timersKeepTime},
	{"V10", onlyWhoMayWrites},
	{"V11", stopsClean},
	{"V12", nothingIsLeft},
	{"V13", memoryIsBounded},
	{"V14", listsAreBounded},
	{"V15", harmStaysAtItsKey},
	{"V25", madeOnce},
	{"V26", eventsLeadToTheEnd},
	{"V24", doneIsDone}, // before V17, which it explains
	{"V17", whatIsWantedLasts},
	{"V29", reconcilesAreExplained},
	{"V30", func(h *History) []Violation { return h.Sharing.holderWrites(h.Events) }},
	{"V22", sharedObjectsStayAsTheyAre},
	{"V23", nothingUnseenIsErased},
}

// perInvariant is how many violations are kept; the first ones explain the failure.
const perInvariant = 5

func (h *History) checkInvariants() {
	for _, v := range invariants {
		found := v.holds(h)
		for i := range found {
			found[i].Invariant = v.name
		}
		if len(found) > perInvariant {
			found = append(found[:perInvariant], Violation{v.name, fmt.Sprintf("and %d more", len(found)-perInvariant), -1})
		}
		h.Violations = append(h.Violations, found...)
	}
}

// violated returns a violation at the event with index i. checkInvariants sets the
// invariant.
func violated(i int, format string, args ...any) Violation {
	return Violation{Text: fmt.Sprintf(format, args...), Event: i}
}

type object struct{ kind, key string }

// state is the state of an object at one moment; version 0: it does not exist.
type state struct {
	uid     string
	version uint64
}

// apply applies a revision to server, or undoes it.
func apply(server map[object]state, e Event) {
	if e.Name == "deleted" {
		delete(server, object{e.Kind, e.Key})
		return
	}
	server[object{e.Kind, e.Key}] = state{e.UID, e.Version}
}

// store identifies an informer's store.
type store struct{ who, kind, name string }

func (s store) String() string { return s.who + "'s informer of " + s.kind }

func storeOf(e Event) store { return store{e.Who, e.Kind, e.Name} }

type cache struct {
	objects map[string]state
	reached uint64
	whole   bool
	at      int // index of its last event
	// ever is the newest version of each key that it has held, everMost the highest
	// that it has reached: a handler can receive an event that the store has already
	// undone.
	ever     map[string]uint64
	everMost uint64
}

type caches map[store]*cache

// take applies e to its store, and returns the store.
func (c caches) take(e Event, at int) *cache {
	held := c[storeOf(e)]
	if held == nil {
		held = &cache{objects: map[string]state{}, ever: map[string]uint64{}}
		c[storeOf(e)] = held
	}
	held.at, held.whole = at, e.Whole
	if e.Reached > 0 {
		held.reached = e.Reached
		held.everMost = max(held.everMost, e.Reached)
	}
	switch {
	case e.Key == "":
	case e.Version == 0:
		delete(held.objects, e.Key)
	default:
		held.objects[e.Key] = state{e.UID, e.Version}
		held.ever[e.Key] = max(held.ever[e.Key], e.Version)
	}
	return held
}

// alive returns the processes that still run at the end, by name.
func (h *History) alive() map[string]bool {
	alive := map[string]bool{}
	for _, e := range h.Events {
		switch e.What {
		case Started:
			alive[e.Who] = true
		case Crashed, Exited:
			delete(alive, e.Who)
		case Rest, Restless:
			return alive
		}
	}
	return alive
}

// mains returns the processes of RunMain, whose reconciles are not recorded.
func (h *History) mains() map[string]bool {
	mains := map[string]bool{}
	for _, e := range h.Events {
		if e.What == Started && e.Name == unseen {
			mains[e.Who] = true
		}
	}
	return mains
}

// atRest returns the index of the Rest event; -1: the run never came to rest.
func (h *History) atRest() int { return h.last(Rest) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
