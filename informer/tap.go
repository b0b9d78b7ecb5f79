// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tap feeds one scope of a metadata informer from the tee of another
// informer's Reflector, in place of a list and watch of its own.
type tap struct {
	scope     WatchScope
	id        ScopeID
	transform func(Object) (Object, error) // nil: none
	managed   bool                         // managedFields stay
	// The lender fills these in before the tee has the tap.
	lender    string // the informer that the watch belongs to, for people
	namespace string // of the lender's objects only these are in scope; empty: all
	state     func() ScopeState

	done chan struct{} // closed when the lender's Reflector has ended
	last string        // the version it reached; read after done
	mu   struct {
		sync.Mutex              // is held while something goes into into
		into       sink[Object] // nil: the tap has left
	}
}

// newTap is a tap of scope id that feeds into. It starts nothing.
func newTap(scope WatchScope, id ScopeID, into sink[Object], transform func(Object) (Object, error)) *tap {
	t := &tap{scope: scope, id: id, transform: transform, done: make(chan struct{})}
	t.mu.into = into
	return t
}

// leave takes the tap away: when it has returned nothing more is fed.
func (t *tap) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.into = nil
}

func (t *tap) hasLeft() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.into == nil
}

// end says that the Reflector has ended at version last; empty: before a list.
func (t *tap) end(last string) {
	t.last = last
	close(t.done)
}

// feed has f put something into the sink, unless the tap has left.
func (t *tap) feed(f func(into sink[Object])) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.into != nil {
		f(t.mu.into)
	}
}

// mine is d for this scope. ok: the object is in it.
func (t *tap) mine(d Delta[Object]) (_ Delta[Object], ok bool) {
	if t.namespace != "" && d.Key.Namespace != "" && d.Key.Namespace != t.namespace {
		return d, false // a namespace does not divide a kind of cluster scope
	}
	d.Scope = t.id
	if m, ok := d.Object.(*metav1.PartialObjectMetadata); ok && !t.managed {
		d.Object = withoutManagedFields(m)
	}
	if t.transform != nil && d.Err == nil && d.Object != nil {
		// A transform owns its object; this one shares maps with the full object.
		obj, err := callTransform(t.transform, Copy(d.Object))
		if err != nil {
			d.Metadata, _ = d.Object.(*metav1.PartialObjectMetadata)
			d.Err, d.original = fmt.Errorf("transform: %w", err), d.Object
			obj = nil
		}
		d.Object = obj
	}
	return d, true
}

func (t *tap) push(d Delta[Object]) {
	if d, ok := t.mine(d); ok {
		if d.Type == Deleted && d.Err != nil {
			d.Err, d.FinalStateUnknown = nil, true
		}
		t.feed(func(into sink[Object]) { into.Push(d) })
	}
}

func (t *tap) bookmark(v Version) {
	t.feed(func(into sink[Object]) { into.Bookmark(t.id, v) })
}

// tapReplacement is a list on its way to a tap.
type tapReplacement struct {
	tap  *tap
	list replacement[Object]
}

func (t *tap) replace() *tapReplacement {
	r := &tapReplacement{tap: t, list: discarded{}}
	t.feed(func(into sink[Object]) { r.list = into.replace(t.id) })
	return r
}

func (r *tapReplacement) add(d Delta[Object]) {
	if d, ok := r.tap.mine(d); ok {
		r.list.Add(d)
	}
}

func (r *tapReplacement) remove(d Delta[Object]) {
	if d, ok := r.tap.mine(d); ok {
		r.list.Remove(d)
	}
}

func (r *tapReplacement) commit(v Version) {
	r.tap.feed(func(sink[Object]) { r.list.Commit(v) })
}

// discarded is a list that nobody wants any more.
type discarded struct{}

func (discarded) Add(Delta[Object])    {}
func (discarded) Remove(Delta[Object]) {}
func (discarded) Keep(Key)             {}
func (discarded) Unreadable()          {}
func (discarded) Epoch()               {}
func (discarded) Recompare()           {}
func (discarded) Undone(Version) []Key { return nil }
func (discarded) Commit(Version)       {}
func (discarded) Abort()               {}

// follow has the scope fed by another informer's watch for as long as there is
// one that has its objects in full. It returns where to go on from with a list
// and watch of its own, and false when there was none.
func (r *Reflector[T]) follow(ctx context.Context, p progress) (progress, bool) {
	if r.borrow == nil {
		return p, false
	}
	t := r.borrow(ParseVersion(p.last))
	if t == nil {
		return p, false
	}
	r.follows.Store(t)
	r.status.follows(t.lender)
	select {
	case <-t.done:
	case <-ctx.Done():
	}
	t.leave()
	r.follows.Store(nil)
	p = progress{paged: p.paged, noStreamBefore: p.noStreamBefore}
	p.phase = p.listPhase(time.Now())
	select {
	case <-t.done:
		if t.last != "" {
			p.phase, p.last = phaseWatch, t.last
		}
	default:
	}
	return p, true
}

// shared is the state of a scope that t feeds: that of the watch it comes from.
func (t *tap) shared(own ScopeState) ScopeState {
	s := t.state()
	s.Scope, s.SharedWith = own.Scope, t.lender
	s.Watches, s.Relists = own.Watches, own.Relists
	return s
}

// borrower is how the Reflector of a scope of a metadata informer finds a tap:
// fed by an informer that has the objects in full, at version from or later.
func (c *core) borrower(scope WatchScope, id ScopeID) func(from Version) *tap {
	if c.borrow == nil || !ofMetadata(c.object) {
		return nil
	}
	return func(from Version) *tap {
		t := newTap(scope, id, fifoSink[Object]{c.fifo}, c.transform())
		if t.managed = c.keepsManagedFields(); c.borrow(t, from) {
			return t
		}
		return nil
	}
}

// lend has t fed by a scope of this informer that has all the objects of t's
// scope as the server has them. It is false when there is none, and when it is
// not as far as version from: t's objects would go back in time.
func (c *core) lend(t *tap, from Version) bool {
	if ofMetadata(c.object) || t.managed && !c.keepsManagedFields() {
		return false
	}
	r, scope := c.lender(t.scope)
	if r == nil || from > Version(r.status.version.Load()) {
		return false
	}
	t.lender, t.state = fmt.Sprintf("%s %s", c.object, scope), r.State
	if scope != t.scope {
		t.namespace = t.scope.Namespace
	}
	return r.tee.join(t)
}

// lender is the Reflector of s, or of s in all namespaces; nil: there is none,
// or its objects are not as the server has them.
func (c *core) lender(s WatchScope) (*Reflector[Object], WatchScope) {
	whole := s
	whole.Namespace = ""
	c.critical.Lock()
	defer c.critical.Unlock()
	for _, scope := range []WatchScope{s, whole} {
		if w := c.critical.scopes[scope]; w != nil && c.mayLend() {
			return w.reflector, scope
		}
	}
	return nil, s
}

// mayLend says whether the objects are as the server has them, and sees to it
// that they stay so.
func (c *core) mayLend() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.lent = c.mu.lent || c.mu.transform == nil
	return c.mu.transform == nil
}
