// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"slices"
)

// invariants hold in every run. Each is a pure function of the history.
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
	{"V7", restIsRest},
	{"V8", timersKeepTime},
	{"V10", onlyWhoMayWrites},
	{"V11", stopsClean},
	{"V12", nothingIsLeft},
	{"V13", memoryIsBounded},
	{"V14", listsAreBounded},
	{"V15", harmStaysAtItsKey},
	{"V17", whatIsWantedLasts},
	{"V22", sharedObjectsStayAsTheyAre},
}

// perInvariant violations are kept: the first ones tell the story.
const perInvariant = 5

// judge adds what the invariants find.
func (h *History) judge() {
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

// violated is a violation that the event at index i shows. judge names it.
func violated(i int, format string, args ...any) Violation {
	return Violation{Text: fmt.Sprintf(format, args...), Event: i}
}

// object names an object of the server.
type object struct{ kind, key string }

// state is an object at one moment; version 0: there is none.
type state struct {
	uid     string
	version uint64
}

// apply has a revision of the server done or undone.
func apply(server map[object]state, e Event) {
	if e.Name == "deleted" {
		delete(server, object{e.Kind, e.Key})
		return
	}
	server[object{e.Kind, e.Key}] = state{e.UID, e.Version}
}

// store names an informer's store.
type store struct{ who, kind, name string }

func (s store) String() string { return s.who + "'s informer of " + s.kind }

func storeOf(e Event) store { return store{e.Who, e.Kind, e.Name} }

// cache is what a store holds.
type cache struct {
	objects map[string]state
	reached uint64
	whole   bool
	at      int // of the last event that told of it
	// ever is the newest version of each key that it has held, everMost the most that it
	// has reached: a handler can hear of what was undone after its store has.
	ever     map[string]uint64
	everMost uint64
}

// caches follow the stores event by event.
type caches map[store]*cache

// take has e change its store, and returns that.
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

// processes at the end of the run that still ran, by name.
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

// atRest is the index of the event that says so; -1: it never came to rest.
func (h *History) atRest() int { return h.last(Rest) }

// sortedKeys are the keys of m in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
