// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"math"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/kube"
)

// entryState is the part of an Indexer entry that the rules look at.
type entryState struct {
	scopes  *ScopeSet // that hold the object; empty: there is no object
	uid     types.UID
	version kube.Version
	own     *ScopeSet // the part of scopes that an own write was judged to match, in the state at version
	bad     bool      // cannot be decoded
}

// input is what a delta or an own write reports about a key.
type input struct {
	kind    inputKind
	scope   base.ScopeID // of a delta
	alone   *ScopeSet    // scope alone, if the caller has such a set
	uid     types.UID
	version kube.Version
	bad     bool
	list    kube.Version // of the list that contains a seen object; 0: none
	missing bool         // ended: the object is missing from a list of version
	// recompared: seen in a list compared by content, which differs.
	recompared bool
	// in, unsure, held and unheld are as in Observed.
	in, unsure, held, unheld *ScopeSet
}

type inputKind uint8

const (
	seen     inputKind = iota // a list or watch has the object in this state
	ended                     // a list or watch no longer has it
	again                     // redelivered
	stored                    // own write: the object now has this state
	removed                   // own write: the object is deleted
	absent                    // a read from the server, at version, did not find the object
	accepted                  // the transform accepts what it refused before
)

// decision is the decision about a key.
type decision struct {
	next entryState
	take bool // store the object of the news
	left bool // the object is gone because it left the scopes
	// floor is the newest known version of a deleted key, remembered while a
	// scope is behind it; 0: nothing to remember.
	floor kube.Version
	// tombstone is kept for the UID buried; the zero value removes it.
	buried    types.UID
	tombstone tombstone
	await     kube.Version // version of an own write that is not visible yet; 0: none
	refuse    bool         // the own write cannot be ordered
	hidden    bool         // a scope may have the object, and does not show it
}

// knowledge is what the rules know besides the entry: how far each scope is, and
// what is remembered about the key and about the UID of the news.
type knowledge struct {
	reached []kube.Version // by scope, for those that have begun a list; 0: the list has not ended
	floor   kube.Version
	tomb    tombstone
	ahead   ahead // the last own write of the key
}

// lagging reports whether a scope other than but has not reached v, and may
// still deliver older states.
func (w knowledge) lagging(v kube.Version, but base.ScopeID) bool {
	for id, r := range w.reached {
		if base.ScopeID(id) != but && r < v {
			return true
		}
	}
	return false
}

// behind reports whether a scope has not reached v.
func (w knowledge) behind(v kube.Version) bool {
	return len(w.reached) == 0 || w.lagging(v, forNone)
}

const forNone = base.ScopeID(math.MaxUint32)

func (w knowledge) of(id base.ScopeID) kube.Version {
	if int(id) < len(w.reached) {
		return w.reached[id]
	}
	return 0
}

// decide chooses the next state of an object. The newest version wins, whatever
// its origin.
func decide(h entryState, n input, w knowledge) decision {
	switch n.kind {
	case seen:
		return decideSeen(h, n, w)
	case ended:
		return decideEnded(h, n, w)
	case stored:
		return decideStored(h, n, w)
	case removed:
		return decideRemoved(h, n, w)
	case absent:
		return decideAbsent(h, n)
	case accepted:
		v := decision{next: h}
		if !h.scopes.Empty() && h.bad && h.uid == n.uid && h.version == n.version {
			v.next.bad, v.take = false, true
		}
		return v
	}
	return decision{next: h}
}

func decideSeen(h entryState, n input, w knowledge) decision {
	v := decision{next: h}
	if w.tomb != (tombstone{}) {
		v.buried, v.tombstone = n.uid, w.tomb.shown(n)
		if v.tombstone != (tombstone{}) {
			if !h.scopes.Empty() && h.uid != n.uid && n.version > h.version {
				v.next, v.floor = entryState{}, n.version // the previous object of the key is gone too
			}
			return v
		}
	}
	older := n.version != 0 && n.version < h.version
	same := n.version != 0 && n.version == h.version
	alone := n.alone
	if alone == nil {
		alone = ScopesOf(n.scope)
	}
	now := entryState{scopes: alone, uid: n.uid, version: n.version, bad: n.bad}
	if !h.scopes.Empty() {
		now.scopes = h.scopes.With(n.scope)
	}
	switch {
	case older:
	case h.scopes.Empty():
		if n.version == 0 || max(n.version, n.list) >= w.floor {
			v.next, v.take = now, true
		}
	case h.uid != n.uid:
		now.scopes = alone
		v.next, v.take = now, true
	case same && n.recompared:
		// The schema changed, not the object: own stays.
		v.next.scopes, v.next.bad, v.take = now.scopes, n.bad, true
	case same && !(h.bad && !n.bad):
		v.next.scopes = now.scopes
	default:
		v.next, v.take = now, true
	}
	return v
}

func decideEnded(h entryState, n input, w knowledge) decision {
	v := decision{next: h}
	if w.tomb != (tombstone{}) {
		v.buried, v.tombstone = n.uid, w.tomb.ended(n, w.lagging(n.version, n.scope))
	}
	// Missing from a list does not mean deleted at the list's version: the
	// object may only have left this scope, and have changed in another since.
	floor := h.version
	if !n.missing {
		floor = max(floor, n.version)
	}
	if n.version < floor || w.lagging(floor, n.scope) {
		v.floor = floor
	}
	rest := h.scopes.without(ScopesOf(n.scope))
	switch {
	case h.scopes.Empty():
		return v
	case !h.scopes.Has(n.scope), n.uid != "" && n.uid != h.uid:
		v.floor = 0
		return v
	case n.version != 0 && n.version < h.version && (h.own.Has(n.scope) || w.of(n.scope) >= h.version):
		v.floor = 0
		return v // the scope has a state newer than this end
	case n.version != 0 && n.version < w.ahead.version && w.ahead.in.Has(n.scope):
		v.floor = 0
		return v // an own write was in the scope after this end, though others have newer states
	case !rest.Empty():
		v.floor = 0
		v.next.scopes = rest
		return v
	}
	v.next = entryState{}
	return v
}

func decideStored(h entryState, n input, w knowledge) decision {
	v := decision{next: h}
	present := !h.scopes.Empty()
	switch {
	case n.version == 0 || present && h.version == 0:
		v.refuse = true
		return v
	case w.tomb != tombstone{}, present && n.version <= h.version && n.uid != h.uid:
		return v
	case present && n.version <= h.version:
		return decideShown(h, n, w)
	case !present && n.version < w.floor:
		for id := range n.in.All() {
			v.hidden = v.hidden || w.of(id) < w.floor
		}
		return v
	case n.in.Empty() && !n.unsure.Empty():
		v.await = n.version
		return v
	}
	if !n.unsure.Empty() {
		v.await = n.version
	}
	now := entryState{uid: n.uid, version: n.version, bad: n.bad}
	for id := range n.in.All() {
		// A scope past the version that does not hold the object has seen it
		// leave.
		if w.of(id) < n.version || present && h.uid == n.uid && h.scopes.Has(id) {
			now.scopes = now.scopes.With(id)
		}
	}
	now.own = now.scopes
	if present && h.uid == n.uid {
		for id := range n.unsure.All() {
			if h.scopes.Has(id) {
				now.scopes = now.scopes.With(id)
			}
		}
	}
	switch {
	case !now.scopes.Empty():
		v.next, v.take = now, true
	case !present || !n.in.Empty():
		return v
	default:
		v.next, v.left, v.floor = entryState{}, h.uid == n.uid, n.version
	}
	return v
}

// decideShown is decideStored where another scope has shown the state first, or a newer one. A
// scope that is behind it shows it too, and keeps it until it has reached it.
func decideShown(h entryState, n input, w knowledge) decision {
	v := decision{next: h}
	for id := range n.in.All() {
		switch {
		case w.of(id) >= h.version: // it has seen whether the object is there
		case n.version == h.version, n.held.Has(id):
			v.next.scopes, v.next.own = v.next.scopes.With(id), v.next.own.With(id)
		case !n.unheld.Has(id):
			v.hidden = v.hidden || !h.scopes.Has(id)
		}
	}
	return v
}

// decideRemoved ends the UID, in whatever version it is known. A server may answer with the
// version of the object's last state, which watches are still to deliver.
func decideRemoved(h entryState, n input, w knowledge) decision {
	v := decision{next: h}
	present := !h.scopes.Empty()
	uid := cmp.Or(n.uid, h.uid)
	held, last := present && uid == h.uid, n.version
	if present && h.version == 0 {
		v.refuse = true
		return v
	}
	if held {
		v.next, last = entryState{}, max(n.version, h.version)
	}
	switch {
	case n.version == 0 && uid != "":
		v.buried, v.tombstone = uid, tombstone{after: max(h.version, 1), held: held}
		v.floor = h.version
	case n.version != 0:
		// Where every scope has passed the last state and none holds it, its end was seen.
		behind := w.behind(last)
		if uid != "" && (held || behind) {
			v.buried, v.tombstone = uid, tombstone{after: last, last: true, held: held}
		}
		if behind {
			v.floor = last
		}
	}
	return v
}

// decideAbsent ends an object that a consistent read did not find. A state up to the version
// of the read, from a list or watch that is behind, does not bring it back.
func decideAbsent(h entryState, n input) decision {
	v := decision{next: h}
	switch present := !h.scopes.Empty(); {
	case n.version == 0 || present && h.version == 0:
		v.refuse = present
		return v
	case h.version > n.version:
		return v
	}
	v.next, v.floor = entryState{}, n.version
	return v
}
