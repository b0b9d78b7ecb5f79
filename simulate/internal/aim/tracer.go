// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package aim

import "github.com/flyball-dev/flyball/simulate"

// A Control is a Tracer.
var _ simulate.Tracer = (*Control)(nil)

// Asked makes faults happen before a write.
func (c *Control) Asked(r simulate.Request) {
	if c.next != nil {
		c.next.Asked(r)
	}
	c.met(r, false)
}

// Answering makes faults happen after a write.
func (c *Control) Answering(r simulate.Request) {
	if c.next != nil {
		c.next.Answering(r)
	}
	c.met(r, true)
}

// Stored passes a change on.
func (c *Control) Stored(change simulate.Change) {
	if c.next != nil {
		c.next.Stored(change)
	}
}

// Answered passes the end of a request on.
func (c *Control) Answered(r simulate.Request, code int) {
	if c.next != nil {
		c.next.Answered(r, code)
	}
}

// Panicked passes a panic of the server on.
func (c *Control) Panicked(r simulate.Request, value any, stack []byte) {
	if c.next != nil {
		c.next.Panicked(r, value, stack)
	}
}

// Sending passes an event of a watch on.
func (c *Control) Sending(r simulate.Request, e simulate.Event) {
	if c.next != nil {
		c.next.Sending(r, e)
	}
}
