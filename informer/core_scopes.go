// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/internal/nursery"
)

// watched is one scope that at least one handle holds, and the Reflector that
// feeds it.
type watched struct {
	id        base.ScopeID
	scope     WatchScope
	matcher   base.Matcher
	reflector *reflector.Reflector[Object]
	member    *nursery.Member // the Reflector's run; nil: it never runs
	lw        ListerWatcher[Object]
	decoding  *hand // calls of the transform
	holders   int
	synced    atomic.Bool
}

// quiet: its Reflector has returned, or never runs.
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

// findLocked returns the scopes that are watched already, and the others ready
// to be opened. On an error nothing has changed.
func (c *core) findLocked(scopes []WatchScope) ([]*watched, error) {
	out := make([]*watched, 0, len(scopes))
	for _, s := range scopes {
		w := c.critical.scopes[s]
		if w == nil {
			m, err := base.NewMatcher(s)
			if err != nil {
				return nil, c.errorf("%w", err)
			}
			lw, err := c.newListerWatcher(s)
			if err != nil {
				return nil, c.errorf("watch %s: %w", s, err)
			}
			w = &watched{scope: s, matcher: m, lw: lw}
		}
		out = append(out, w)
	}
	return out, nil
}

// openLocked has a Reflector feed w from now on.
func (c *core) openLocked(w *watched) {
	c.hasOpened() // from here on the transform stays the same
	w.id = c.freeLocked()
	placed := placing[Object]{ListerWatcher: w.lw, place: func(ctx context.Context) error { return c.place(ctx, w.scope) }}
	told := telling[Object]{ListerWatcher: placed, tell: c.tell}
	screened := screening[Object]{ListerWatcher: told, of: c.screen(w)}
	w.decoding = c.roster.take(newHand("transform an object " + w.scope.String()))
	w.reflector = reflector.New(transforming[Object]{ListerWatcher: screened, transform: c.transform, again: againBy(w.lw), hand: w.decoding}, w.scope, w.id, c.fifo, c.optionsOf(w.lw))
	w.reflector.Objects = c.object.String()
	w.reflector.At(w.lw)
	w.reflector.Borrow = c.borrower(w.scope, w.id)
	if c.schemas != nil && !restclient.OfMetadata(c.object) { // metadata has no schema of its kind
		wants := &w.reflector.Wants
		w.reflector.Schema = c.schemas.Scope(c.kind.GroupVersion(), w.reflector.Name(), func() { wants.Add(steps.Demand{Reason: steps.RelistSchema, Content: true}) })
	}
	w.lw = nil
	c.critical.scopes[w.scope] = w
	c.critical.byID[w.id] = w
	c.fifo.Open(w.id)
	c.indexer.Open(w.id)
	c.indexer.Lend(w.id, c.surely(w))
	var err error
	if w.member, err = c.group.Spawn(w.reflector.Run); err != nil {
		w.reflector.Status.Stopped() // the run has ended before
	}
}

// surely says whether an object that is stored belongs to w.
func (c *core) surely(w *watched) func(Key, Object) bool {
	whole := WatchScope{Namespace: w.scope.Namespace}
	changed := c.transform() != nil
	return func(key Key, obj Object) bool {
		if whole.Namespace != "" && key.Namespace != "" && key.Namespace != whole.Namespace {
			return false
		}
		// What a transform has made of an object says nothing of its labels.
		return w.scope == whole || !changed && w.matcher.Match(obj) == base.Inside
	}
}

// freeLocked is a number that nothing speaks of: no row, no delta and no
// Reflector. So there are never many more numbers than scopes at one time.
func (c *core) freeLocked() base.ScopeID {
	at := slices.IndexFunc(c.critical.ended, func(w *watched) bool { return w.quiet() && !c.fifo.SpeaksOf(w.id) })
	if at < 0 {
		c.critical.byID = append(c.critical.byID, nil)
		return base.ScopeID(len(c.critical.byID) - 1)
	}
	id := c.critical.ended[at].id
	c.critical.ended = slices.Delete(c.critical.ended, at, at+1)
	return id
}

// endLocked ends a scope that nobody holds: its Reflector is told to stop, what
// waits of it is dropped, and what it alone held leaves the Indexer.
func (c *core) endLocked(w *watched) {
	if w.member != nil {
		w.member.Cancel()
	}
	delete(c.critical.scopes, w.scope)
	c.critical.byID[w.id] = nil
	c.critical.ended = append(c.critical.ended, w)
	w.reflector = nil
	c.roster.drop(w.decoding)
	c.fifo.End(w.id)
	c.indexer.End(w.id, c.mayHoldLocked)
}

// mayHoldLocked says whether a scope can hold an object of key.
func (c *core) mayHoldLocked(id base.ScopeID, key Key) bool {
	w := c.critical.byID[id]
	return w != nil && (w.scope.Namespace == "" || key.Namespace == "" || w.scope.Namespace == key.Namespace)
}

// livingLocked is b less what it says of scopes that have ended since it was
// popped.
func (c *core) livingLocked(b store.Batch[Object]) store.Batch[Object] {
	for _, w := range c.critical.ended {
		if b.SpeaksOf(w.id) {
			return b.Without(func(id base.ScopeID) bool { return c.critical.byID[id] == nil })
		}
	}
	return b
}

// watchedNow are the scopes that there are.
func (c *core) watchedNow() []*watched {
	c.critical.Lock()
	defer c.critical.Unlock()
	return slices.DeleteFunc(slices.Clone(c.critical.byID), func(w *watched) bool { return w == nil })
}

// reflectorOf is what feeds w; nil: the scope has ended.
func (c *core) reflectorOf(w *watched) *reflector.Reflector[Object] {
	c.critical.Lock()
	defer c.critical.Unlock()
	return w.reflector
}

// idsLocked are the numbers of those that have not ended.
func (c *core) idsLocked(scopes []*watched) *store.ScopeSet {
	out := store.ScopesOf()
	for _, w := range scopes {
		if c.critical.byID[w.id] == w {
			out = out.With(w.id)
		}
	}
	return out
}
