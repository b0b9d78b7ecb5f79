// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// cacheEqualsServer (V1): at rest each informer holds what the server has, by key, UID
// and version. For an informer with a selector, only the objects that it holds are
// compared.
func cacheEqualsServer(h *History) (out []Violation) {
	end := h.atRest()
	if end < 0 {
		end = h.last(Restless)
	}
	if end < 0 {
		return nil // the run was aborted
	}
	m := newMirror()
	for i, e := range h.Events[:end] {
		m.take(e, i)
	}
	alive := h.alive()
	return m.differences(func(who string) bool { return alive[who] })
}

// mirror reconstructs the content of the server and the stores from a history.
type mirror struct {
	server  map[object]state
	stores  caches
	changed map[string]uint64 // the last version of each kind
}

func newMirror() mirror { return mirror{map[object]state{}, caches{}, map[string]uint64{}} }

func (m mirror) take(e Event, at int) {
	switch e.What {
	case Changed:
		apply(m.server, e)
		m.changed[e.Kind] = e.Version
	case Stored:
		m.stores.take(e, at)
	}
}

// laggingStore names a store of a process that has not received a change yet, even if that
// change was undone; empty: none.
func (m mirror) laggingStore(who string) string {
	for _, s := range sortedStores(m.stores) {
		if c := m.stores[s]; s.who == who && c.whole && c.reached < m.changed[s.kind] {
			return fmt.Sprintf("%s has reached version %d, and its kind has changed at %d", s, c.reached, m.changed[s.kind])
		}
	}
	return ""
}

// differences returns where the stores of the selected processes differ from the
// server.
func (m mirror) differences(of func(who string) bool) (out []Violation) {
	for _, s := range sortedStores(m.stores) {
		if !of(s.who) {
			continue
		}
		if difference := m.stores[s].differs(s, m.server); difference != "" {
			out = append(out, violated(m.stores[s].at, "%s differs from the server at rest: %s", s, difference))
		}
	}
	return out
}

// differs describes how a cache differs from the server; empty: it does not.
func (c *cache) differs(s store, server map[object]state) string {
	for _, key := range sortedKeys(c.objects) {
		held, is := c.objects[key], server[object{s.kind, key}]
		if held != is {
			return fmt.Sprintf("it holds %s at version %d (UID %s), the server has version %d (UID %s)", key, held.version, held.uid, is.version, is.uid)
		}
	}
	if !c.whole {
		return ""
	}
	missing := ""
	for o, is := range server {
		if _, held := c.objects[o.key]; o.kind == s.kind && !held && (missing == "" || o.key < missing) {
			missing = o.key
			_ = is
		}
	}
	if missing != "" {
		return fmt.Sprintf("it lacks %s, which the server has at version %d", missing, server[object{s.kind, missing}].version)
	}
	return ""
}

// cacheIsAPastState (V2): after each batch, every object that it changed is as the
// server had it at the version that the store has reached; own writes may be newer.
// Stores are exempt while the server hides changes from watches of their kind, or while
// they follow a time that was undone.
func cacheIsAPastState(h *History) (out []Violation) {
	history := map[object][]state{} // by version; a deletion has no UID
	stores, touched, hidden := caches{}, map[store][]string{}, newHidden(h)
	for i, e := range h.Events {
		hidden.take(e)
		switch e.What {
		case Changed:
			s := state{e.UID, e.Version}
			if e.Name == "deleted" {
				s.uid = ""
			}
			of := object{e.Kind, e.Key}
			history[of] = append(before(history[of], e), s)
		case Stored:
			s, held := storeOf(e), stores.take(e, i)
			if e.Key != "" {
				touched[s] = append(touched[s], e.Key)
			}
			if e.Count > 0 || !e.Whole || held.reached == 0 {
				continue
			}
			if hidden.from(s) {
				touched[s] = nil
				continue
			}
			for _, key := range touched[s] {
				was := at(history[object{e.Kind, key}], held.reached)
				if is := held.objects[key]; is != was && is.version <= held.reached && !(is.version == 0 && e.Own) && !gone(history[object{e.Kind, key}], is) {
					out = append(out, violated(i, "%s has reached version %d and holds %s at version %d, where the server had version %d", s, held.reached, key, is.version, was.version))
				}
			}
			touched[s] = nil
		}
	}
	return out
}

// before returns the part of history before e, without undone revisions, whose versions
// the server assigns again.
func before(history []state, e Event) []state {
	for len(history) > 0 && history[len(history)-1].version >= e.Version {
		history = history[:len(history)-1]
	}
	return history
}

// at returns the state of an object at a version.
func at(history []state, version uint64) state {
	i, found := slices.BinarySearchFunc(history, version, func(s state, v uint64) int { return cmp.Compare(s.version, v) })
	if !found {
		i--
	}
	if i < 0 || history[i].uid == "" {
		return state{}
	}
	return history[i]
}

// gone reports whether an object that is held as absent was deleted since: an own
// deletion hides it at once.
func gone(history []state, is state) bool {
	return is == state{} && len(history) > 0 && history[len(history)-1].uid == ""
}

// nothingGoesBack (V3): the version that a store has reached never decreases, nor does
// the version of an object with one UID, except at an epoch.
func nothingGoesBack(h *History) (out []Violation) {
	reached, versions := map[store]uint64{}, map[store]map[string]uint64{}
	for i, e := range h.Events {
		switch e.What {
		case Epoch:
			for s := range reached {
				if s.who == e.Who && s.kind == e.Kind {
					delete(reached, s)
					delete(versions, s)
				}
			}
		case Stored:
			s := storeOf(e)
			if e.Reached > 0 && e.Reached < reached[s] {
				out = append(out, violated(i, "%s went back from version %d to %d", s, reached[s], e.Reached))
			}
			reached[s] = max(reached[s], e.Reached)
			if e.Version == 0 {
				continue
			}
			if versions[s] == nil {
				versions[s] = map[string]uint64{}
			}
			if e.Version < versions[s][e.UID] {
				out = append(out, violated(i, "%s went back with %s from version %d to %d", s, e.Key, versions[s][e.UID], e.Version))
			}
			versions[s][e.UID] = max(versions[s][e.UID], e.Version)
		}
	}
	return out
}

// sharedObjectsStayAsTheyAre (V22): objects shared by all readers are never modified.
func sharedObjectsStayAsTheyAre(h *History) (out []Violation) {
	for i, e := range h.Events {
		if e.What == Mutated {
			out = append(out, violated(i, "an object that all readers share was changed in place: %s", e.Text))
		}
	}
	return out
}

// nothingUnseenIsErased (V23): no write removes what another client has written after
// the object was read for it. The version that was read prevents that for an update, and
// a patch changes only what it names.
func nothingUnseenIsErased(h *History) (out []Violation) {
	for i, e := range h.Events {
		if e.What == Erased {
			out = append(out, violated(i, "%s's %s of %s %s removes what another client has written since the object was read: give the resourceVersion that was read, or a patch or an apply of nothing but the fields that are meant", e.Who, e.Name, e.Kind, e.Key))
		}
	}
	return out
}

func sortedStores(c caches) []store {
	return slices.SortedFunc(maps.Keys(c), func(a, b store) int {
		return cmp.Or(cmp.Compare(a.who, b.who), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}
