// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/schemas"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// Tap feeds one scope of a metadata informer from the tee of another informer's
// Reflector, in place of its own list and watch.
type Tap struct {
	Scope     listwatch.Scope
	id        base.ScopeID
	transform func(kube.Object) (kube.Object, error)
	Managed   bool           // keep managedFields
	Schema    *schemas.Scope // of the scope; nil: not observed
	// The lender sets these before the tee has the tap.
	Lender    string // name of the informer that owns the watch
	Namespace string // the scope's part of the lender's objects; empty: all
	State     func() state.Scope

	done chan struct{} // closed when the lender's Reflector has ended
	last string        // last version it reached; read after done
	mu   struct {
		sync.Mutex      // held while something goes into into
		into       sink // nil: the tap has left
	}
}

// NewTap returns a tap that feeds scope id of into. It starts nothing.
func NewTap(scope listwatch.Scope, id base.ScopeID, into sink, transform func(kube.Object) (kube.Object, error)) *Tap {
	t := &Tap{Scope: scope, id: id, transform: transform, done: make(chan struct{})}
	t.mu.into = into
	return t
}

// leave removes the tap. After it returns nothing more is fed.
func (t *Tap) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.into = nil
}

func (t *Tap) hasLeft() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.into == nil
}

// end records that the Reflector has ended at version last; empty: before a
// list.
func (t *Tap) end(last string) {
	t.last = last
	close(t.done)
}

// feed calls f with the sink, unless the tap has left.
func (t *Tap) feed(f func(into sink)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.into != nil {
		f(t.mu.into)
	}
}

// mine converts d to this scope. ok: the object is in it.
func (t *Tap) mine(d store.Delta) (_ store.Delta, ok bool) {
	if t.Namespace != "" && d.Key.Namespace != "" && d.Key.Namespace != t.Namespace {
		return d, false // a namespace does not limit a cluster-scoped kind
	}
	d.Scope = t.id
	if m, ok := d.Object.(*metav1.PartialObjectMetadata); ok && !t.Managed {
		d.Object = base.WithoutManagedFields(m)
	}
	if t.transform != nil && d.Err == nil && d.Object != nil {
		// A transform owns its object, but this one shares maps with the full
		// object.
		obj, err := base.CallTransform(t.transform, kube.Copy(d.Object))
		if err != nil {
			d.Metadata, _ = d.Object.(*metav1.PartialObjectMetadata)
			d.Err, d.Refused = fmt.Errorf("transform: %w", err), d.Object
			obj = nil
		}
		d.Object = obj
	}
	return d, true
}

func (t *Tap) push(d store.Delta) {
	if d, ok := t.mine(d); ok {
		if d.Type == store.Deleted && d.Err != nil {
			d.Err, d.FinalStateUnknown = nil, true
		}
		t.feed(func(into sink) { into.Push(d) })
	}
}

func (t *Tap) bookmark(v kube.Version) {
	t.feed(func(into sink) { into.Bookmark(t.id, v) })
}

// tapReplacement is a list on its way to a tap.
type tapReplacement struct {
	tap  *Tap
	list replacement
}

func (t *Tap) replace() *tapReplacement {
	r := &tapReplacement{tap: t, list: discarded{}}
	t.feed(func(into sink) { r.list = into.replace(t.id) })
	return r
}

func (r *tapReplacement) add(d store.Delta) {
	if d, ok := r.tap.mine(d); ok {
		r.list.Add(d)
	}
}

func (r *tapReplacement) remove(d store.Delta) {
	if d, ok := r.tap.mine(d); ok {
		r.list.Remove(d)
	}
}

func (r *tapReplacement) commit(v kube.Version) {
	r.tap.feed(func(sink) { r.list.Commit(v) })
}

// discarded is a list for a tap that has left.
type discarded struct{}

func (discarded) Add(store.Delta)                {}
func (discarded) Remove(store.Delta)             {}
func (discarded) Keep(kube.Key)                  {}
func (discarded) Unreadable()                    {}
func (discarded) Heap() int64                    { return 0 }
func (discarded) Pack()                          {}
func (discarded) Epoch()                         {}
func (discarded) Recompare()                     {}
func (discarded) Undone(kube.Version) []kube.Key { return nil }
func (discarded) Commit(kube.Version)            {}
func (discarded) Abort()                         {}

// follow feeds the scope from another informer's watch while one has its
// objects in full. It returns where to continue with its own list and watch,
// and false if there was no such watch.
func (r *Reflector) follow(ctx context.Context, p steps.Progress) (steps.Progress, bool) {
	if r.Borrow == nil {
		return p, false
	}
	t := r.Borrow(kube.ParseVersion(p.Last))
	if t == nil {
		return p, false
	}
	r.follows.Store(t)
	r.Status.follows(t.Lender)
	select {
	case <-t.done:
	case <-ctx.Done():
	}
	t.leave()
	r.follows.Store(nil)
	p = steps.Progress{Paged: p.Paged, NoStreamBefore: p.NoStreamBefore}
	p.Phase = p.ListPhase(time.Now())
	select {
	case <-t.done:
		if t.last != "" {
			p.Phase, p.Last = steps.PhaseWatch, t.last
		}
	default:
	}
	return p, true
}

// shared returns the state of a scope fed by t: that of the shared watch.
func (t *Tap) shared(own state.Scope) state.Scope {
	s := t.State()
	s.Scope, s.SharedWith = own.Scope, t.Lender
	s.Watches, s.Relists = own.Watches, own.Relists
	return s
}
