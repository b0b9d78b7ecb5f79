// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package gate admits calls until it is closed.
package gate

import "sync"

// Gate is ready to use as its zero value. It is safe for concurrent use.
type Gate struct {
	inside sync.WaitGroup
	mu     struct {
		sync.Mutex
		closed bool
	}
}

// Enter reports whether the gate is open. If so, Leave must follow.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return false
	}
	g.inside.Add(1)
	return true
}

// Leave ends a call.
func (g *Gate) Leave() { g.inside.Done() }

// Close admits no more calls, and waits for those inside.
func (g *Gate) Close() {
	g.mu.Lock()
	g.mu.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}
