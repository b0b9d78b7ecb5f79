// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
)

// borrower is how the Reflector of a scope of a metadata informer finds a tap:
// fed by an informer that has the objects in full, at version from or later.
func (c *core) borrower(scope WatchScope, id base.ScopeID) func(from Version) *reflector.Tap {
	if c.borrow == nil || !restclient.OfMetadata(c.object) {
		return nil
	}
	return func(from Version) *reflector.Tap {
		t := reflector.NewTap(scope, id, reflector.FIFOSink[Object]{DeltaFIFO: c.fifo}, c.transform())
		if t.Managed = c.keepsManagedFields(); c.borrow(t, from) {
			return t
		}
		return nil
	}
}

// lend has t fed by a scope of this informer that has all the objects of t's
// scope as the server has them. It is false when there is none, and when it is
// not as far as version from: t's objects would go back in time.
func (c *core) lend(t *reflector.Tap, from Version) bool {
	if restclient.OfMetadata(c.object) || t.Managed && !c.keepsManagedFields() {
		return false
	}
	r, scope := c.lender(t.Scope)
	if r == nil || from > Version(r.Status.Version.Load()) {
		return false
	}
	t.Lender, t.State = fmt.Sprintf("%s %s", c.object, scope), r.State
	if scope != t.Scope {
		t.Namespace = t.Scope.Namespace
	}
	return r.Tee.Join(t)
}

// lender is the Reflector of s, or of s in all namespaces; nil: there is none,
// or its objects are not as the server has them.
func (c *core) lender(s WatchScope) (*reflector.Reflector[Object], WatchScope) {
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
