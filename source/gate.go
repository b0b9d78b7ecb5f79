// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import "sync"

// gate admits calls until it is closed; close waits for those inside.
type gate struct {
	inside sync.WaitGroup
	mu     struct {
		sync.Mutex
		closed bool
	}
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return false
	}
	g.inside.Add(1)
	return true
}

func (g *gate) leave() { g.inside.Done() }

func (g *gate) close() {
	g.mu.Lock()
	g.mu.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}
