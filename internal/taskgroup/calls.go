// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package taskgroup

import "sync"

// Calls admits calls until it is closed, and then waits for those that run. It is ready to use as its
// zero value, and safe for concurrent use.
type Calls struct {
	running sync.WaitGroup
	mu      struct {
		sync.Mutex
		closed bool
	}
}

// Begin reports whether a call may run. If so, End must follow.
func (c *Calls) Begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return false
	}
	c.running.Add(1)
	return true
}

// End ends a call.
func (c *Calls) End() { c.running.Done() }

// Close admits no more calls, and waits for those that run.
func (c *Calls) Close() {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.Unlock()
	c.running.Wait()
}
