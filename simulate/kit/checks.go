// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// checks are the functions of Settled and Never.
type checks struct {
	record  *record
	changed chan struct{} // holds one token: the server has changed
	mu      struct {
		sync.Mutex
		settled []check
		never   []check
	}
}

// check is a function of the scenario that returns what is wrong.
type check struct {
	name string
	f    func() error
}

func newChecks(r *record) *checks { return &checks{record: r, changed: make(chan struct{}, 1)} }

func (c *checks) addSettled(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.settled = append(c.mu.settled, check{fmt.Sprintf("settled %d", len(c.mu.settled)+1), f})
}

func (c *checks) addNever(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.never = append(c.mu.never, check{fmt.Sprintf("never %d", len(c.mu.never)+1), f})
}

// wake makes watch call the checks of Never. It does not block.
func (c *checks) wake() {
	select {
	case c.changed <- struct{}{}:
	default: // a token is there already
	}
}

// settled calls the checks of Settled. It records each result if last, and returns the
// first failure.
func (c *checks) settled(last bool) (failure string) {
	c.mu.Lock()
	all := slices.Clone(c.mu.settled)
	c.mu.Unlock()
	for _, one := range all {
		text := errorText(one.f())
		if failure == "" && text != "" {
			failure = one.name + ": " + text
		}
		if last {
			c.record.add(Event{What: Check, Name: one.name, Text: text})
		}
	}
	return failure
}

// watch calls the checks of Never after each change until ctx ends, and failed after
// each failure. A failed check is not called again.
func (c *checks) watch(ctx context.Context, failed func()) {
	over := map[string]bool{}
	for {
		select {
		case <-c.changed:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		all := slices.Clone(c.mu.never)
		c.mu.Unlock()
		for _, one := range all {
			if over[one.name] {
				continue
			}
			if err := one.f(); err != nil {
				over[one.name] = true
				c.record.add(Event{What: Check, Name: one.name, Text: err.Error()})
				failed()
			}
		}
	}
}

// errorText returns the text of an error, or an empty one if there is none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
