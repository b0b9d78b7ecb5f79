// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/kube"
)

// scopesAtOnce is how many scopes begin or end in one critical section.
const scopesAtOnce = 256

// watched is one scope held by at least one handle, with its Reflector.
type watched struct {
	id        base.ScopeID
	scope     listwatch.Scope
	matcher   reflector.Matcher
	reflector *reflector.Reflector
	member    *taskgroup.Member // the Reflector's run; nil: it never runs
	lw        listwatch.ListerWatcher[kube.Object]
	decoding  *taskProbe // calls of the transform
	holders   int
	kept      uint32 // generation of its objects, guarded by the core's critical section
	past      uint32 // no object of an earlier generation comes from it; as kept
	synced    atomic.Bool
	relists   atomic.Int64 // stored lists after the first
}

// beginKept sets what a new scope keeps: what all others do, since it may show
// their objects.
func (w *watched) beginKept(now uint32, behind bool) {
	w.kept, w.past = now, now
	if behind {
		w.kept = 0
		w.reflector.Wants.Add(steps.Demand{Reason: steps.RelistFields, Content: true})
	}
}

// quiet reports whether its Reflector has returned, or never runs.
func (w *watched) quiet() bool {
	if w.member == nil {
		return true
	}
	select {
	case <-w.member.Done():
		return true
	default:
		return false
	}
}

// surely reports whether a stored object, of which a transform may have changed the labels,
// belongs to w.
func (w *watched) surely(key kube.Key, obj kube.Object, changed bool) bool {
	if d := w.scope.Division; !d.Everything() {
		if base.IsNil(obj) || changed && d.By == shards.Owner || w.matcher.IsForeign(key, obj.GetUID(), obj) {
			return false
		}
	}
	if w.scope.LabelSelector+w.scope.FieldSelector == "" {
		return w.scope.Namespace == "" || key.Namespace == "" || key.Namespace == w.scope.Namespace
	}
	return !changed && w.matcher.MatchKey(key, compact.LabelsOf(obj)) == reflector.Inside
}

// scopeTable has the watched scopes of a core. The core's critical section guards it.
type scopeTable struct {
	byScope map[listwatch.Scope]*watched
	byID    []*watched            // nil: number unused
	within  map[string][]*watched // by the namespace of the scope
	unheld  []*watched            // no handle held them when they were added; they end in parts
	ended   []*watched            // their numbers may still be in use
	free    []base.ScopeID        // numbers that nothing uses
}

func newScopeTable() scopeTable {
	return scopeTable{byScope: make(map[listwatch.Scope]*watched), within: make(map[string][]*watched)}
}

// at returns the scope with a number, or nil if it has ended.
func (t *scopeTable) at(id base.ScopeID) *watched {
	if int(id) >= len(t.byID) {
		return nil
	}
	return t.byID[id]
}

// has reports whether w has not ended.
func (t *scopeTable) has(w *watched) bool { return t.at(w.id) == w }

// all yields the scopes in the order of their numbers.
func (t *scopeTable) all() iter.Seq[*watched] {
	return func(yield func(*watched) bool) {
		for _, w := range t.byID {
			if w != nil && !yield(w) {
				return
			}
		}
	}
}

// reached returns the version up to which x is complete in all scopes; 0: there is none.
func (t *scopeTable) reached(x *store.Indexer) (least kube.Version) {
	for w := range t.all() {
		if at := x.Reached(w.id); least == 0 || at < least {
			least = at
		}
	}
	return least
}

// takeID returns a number that no row, delta or Reflector uses.
func (t *scopeTable) takeID() base.ScopeID {
	if last := len(t.free) - 1; last >= 0 {
		id := t.free[last]
		t.free = t.free[:last]
		return id
	}
	t.byID = append(t.byID, nil)
	return base.ScopeID(len(t.byID) - 1)
}

// reclaim frees the numbers of ended scopes that no delta or Reflector uses any more.
// Rows never do. So there are never many more numbers than scopes at one time.
func (t *scopeTable) reclaim(fifo *store.DeltaFIFO) {
	if len(t.ended) == 0 {
		return
	}
	spoken := fifo.Spoken()
	t.ended = slices.DeleteFunc(t.ended, func(w *watched) bool {
		unused := w.quiet() && !spoken.Has(w.id)
		if unused {
			t.free = append(t.free, w.id)
		}
		return unused
	})
}

// add adds w, which has a number.
func (t *scopeTable) add(w *watched) {
	t.byScope[w.scope] = w
	t.byID[w.id] = w
	t.within[w.scope.Namespace] = append(t.within[w.scope.Namespace], w)
}

// remove removes scopes that end, and returns their numbers. These stay in use until reclaim.
func (t *scopeTable) remove(scopes []*watched) *store.ScopeSet {
	ids := make([]base.ScopeID, 0, len(scopes))
	namespaces := make(map[string]bool)
	for _, w := range scopes {
		delete(t.byScope, w.scope)
		t.byID[w.id] = nil
		namespaces[w.scope.Namespace] = true
		ids = append(ids, w.id)
	}
	for namespace := range namespaces {
		t.leave(namespace)
	}
	t.ended = append(t.ended, scopes...)
	return store.ScopesOf(ids...)
}

// leave drops the ended scopes of a namespace.
func (t *scopeTable) leave(namespace string) {
	living := slices.DeleteFunc(t.within[namespace], func(w *watched) bool { return !t.has(w) })
	if t.within[namespace] = living; len(living) == 0 {
		delete(t.within, namespace)
	}
}

// release drops a holder of each scope. What has none left is unheld.
func (t *scopeTable) release(holds []*watched) {
	for _, w := range holds {
		if w.holders--; w.holders == 0 {
			t.unheld = append(t.unheld, w)
		}
	}
}

// takeUnheld takes up to scopesAtOnce unheld scopes, and returns those that must end. taken:
// there were some. more: others are left.
func (t *scopeTable) takeUnheld() (end []*watched, taken, more bool) {
	n := min(len(t.unheld), scopesAtOnce)
	if n == 0 {
		return nil, false, false
	}
	end = slices.DeleteFunc(t.unheld[:n:n], func(w *watched) bool {
		return w.holders > 0 || !t.has(w) // held again, or ended
	})
	if t.unheld = t.unheld[n:]; len(t.unheld) == 0 {
		t.unheld = nil
	}
	return end, true, t.unheld != nil
}

// mayHold yields the scopes that can hold an object of key.
func (t *scopeTable) mayHold(key kube.Key) iter.Seq[base.ScopeID] {
	return func(yield func(base.ScopeID) bool) {
		for w := range inNamespace(t.within, key.Namespace) {
			if !yield(w.id) {
				return
			}
		}
	}
}

// living returns b without the scopes that ended after it was popped.
func (t *scopeTable) living(b store.Batch) store.Batch {
	ended := func(id base.ScopeID) bool { return int(id) < len(t.byID) && t.byID[id] == nil }
	if b.SpeaksOf(ended) {
		return b.Without(ended)
	}
	return b
}

// ids returns the numbers of the scopes that have not ended.
func (t *scopeTable) ids(scopes []*watched) *store.ScopeSet {
	ids := make([]base.ScopeID, 0, len(scopes))
	for _, w := range scopes {
		if t.has(w) {
			ids = append(ids, w.id)
		}
	}
	return store.ScopesOf(ids...)
}

// behind reports whether a scope keeps less than a generation.
func (t *scopeTable) behind(generation uint32) bool {
	return slices.ContainsFunc(t.byID, func(w *watched) bool { return w != nil && w.kept < generation })
}

// keeps reports whether all that w shows, now and later, has the fields of
// a generation.
func (t *scopeTable) keeps(w *watched, since uint32) bool {
	if since == 0 {
		return true
	}
	if w.kept < since {
		return false
	}
	for other := range inNamespace(t.within, w.scope.Namespace) {
		if other.past < since {
			return false
		}
	}
	return true
}

// pass records scopes that have passed generations.
func (t *scopeTable) pass(passed []store.Passed) {
	for _, p := range passed {
		if w := t.at(p.Scope); w != nil {
			w.past = max(w.past, p.Generation)
			if p.Listed {
				w.kept = max(w.kept, p.Generation)
			}
		}
	}
}

// inNamespace yields the scopes that can have objects of a namespace; empty: of no namespace,
// or of one that is not known.
func inNamespace(scopes map[string][]*watched, namespace string) iter.Seq[*watched] {
	return func(yield func(*watched) bool) {
		for _, at := range []string{"", namespace} {
			for _, w := range scopes[at] {
				if !yield(w) {
					return
				}
			}
			if namespace == "" {
				break
			}
		}
		if namespace != "" {
			return
		}
		for at, some := range scopes {
			for _, w := range some {
				if at != "" && !yield(w) {
					return
				}
			}
		}
	}
}
