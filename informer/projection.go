// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"strings"
	"sync/atomic"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// A kind keeps the union of the fields that its handles want, since they share
// its objects. The union only grows; each growth is a generation:
//
//	wantLocked: a handle wants more ─▶ next generation, a list is demanded of each scope
//	     │                                  │ feed: the list begins
//	     ▼                                  ▼
//	the handle sees no scope   ◀── passedLocked ◀── DeltaFIFO: the scope passes,
//	until the list is stored                        and then its list ends

// projection says which fields of the objects a core keeps.
type projection struct {
	now atomic.Pointer[generation]
	// The core's critical section guards the fields below.
	past   []*generation // by number, the present one included
	newest kube.Version  // that was stored
	whole  bool          // all objects have all of their fields, from now on
	narrow kube.Version  // objects of later versions always had them; set once whole is
}

// generation is a set of fields, a part of the next one's.
type generation struct {
	number uint32
	set    *fields.Set // nil: everything
}

// begin sets what is kept before a handle wants anything: everything.
func (p *projection) begin() { p.now.Store(&generation{}) }

// current is what requests that begin now keep of the objects.
func (p *projection) current() *generation { return p.now.Load() }

// with returns the first generation that has set, a new one if there is none.
func (p *projection) with(set *fields.Set) (g *generation, grown bool) {
	for _, g := range p.past {
		if g.set.Contains(set) {
			return g, false
		}
	}
	next := &generation{set: set, number: uint32(len(p.past))}
	if n := len(p.past); n > 0 {
		next.set = fields.Union(p.past[n-1].set, set)
	}
	p.past = append(p.past, next)
	p.now.Store(next)
	return next, true
}

// metadata returns the first generation that has all metadata; nil: none.
func (p *projection) metadata() *generation {
	for _, g := range p.past {
		if sub, keep := g.set.Child("metadata"); keep && sub == nil {
			return g
		}
	}
	return nil
}

// keepsMetadata reports whether the objects of w have all of their metadata.
func (p *projection) keepsMetadata(scopes *scopeTable, w *watched) bool {
	g := p.metadata()
	return g != nil && scopes.keeps(w, g.number)
}

// recordStored records a version that is stored.
func (p *projection) recordStored(version kube.Version) { p.newest = max(p.newest, version) }

// widened reports whether the stored objects have all of their fields by now,
// which they then keep, and remembers since when. An informer that has stored
// nothing may follow one that kept less.
func (p *projection) widened(scopes *scopeTable) bool {
	now := p.current()
	switch {
	case p.whole:
		return true
	case now.set != nil || len(p.past) == 0 || p.newest == 0:
		return false
	}
	for w := range scopes.all() {
		if !scopes.keeps(w, now.number) {
			return false
		}
	}
	p.whole, p.narrow = true, p.newest
	return true
}

// passing returns the function that records a begun list of a scope. Only the
// scope's Reflector calls it.
func (p *projection) passing(id base.ScopeID, fifo *store.DeltaFIFO) (begin func()) {
	var passed uint32
	return func() {
		if now := p.current().number; now > passed {
			passed = now
			fifo.Pass(id, now)
		}
	}
}

// wanted is what a handle wants; the core's critical section guards it.
type wanted struct {
	set    *fields.Set // nil: everything
	known  bool        // set is set, and does not change
	counts bool        // the projection has it
	since  uint32      // first generation that has it
	waits  bool        // for objects of that generation
}

// keeps is what a core keeps of its objects.
type keeps struct {
	fields  *fields.Set // nil: all
	managed bool        // managedFields too
}

// keeps is what is kept of the objects, with managedFields if that is asked for.
func (g *generation) keeps(managed bool) keeps {
	return keeps{g.set, g.set == nil && managed}
}

// reduce clears what is not kept of obj, which must not be shared.
func (k keeps) reduce(obj kube.Object) {
	if !k.managed {
		obj.SetManagedFields(nil)
	}
	if k.fields == nil {
		return
	}
	fields.Prune(obj, k.fields)
	obj.SetResourceVersion(strings.Clone(obj.GetResourceVersion())) // it has another origin now than the whole object
}
