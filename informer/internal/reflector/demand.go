// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"sync"

	"github.com/flyball-dev/flyball/informer/internal/steps"
)

// demands passes demands for lists to the Reflector's goroutine. Safe for
// concurrent use.
type demands struct {
	mu struct {
		sync.Mutex
		wanted steps.Demand
		cancel func(error) // of the open watch, if any
	}
}

// Add demands a list. It ends an open watch.
func (q *demands) Add(d steps.Demand) {
	q.mu.Lock()
	q.mu.wanted = q.mu.wanted.And(d)
	cancel := q.mu.cancel
	q.mu.Unlock()
	if cancel != nil {
		cancel(steps.ErrDemanded)
	}
}

// take returns and clears the present demand.
func (q *demands) take() steps.Demand {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.mu.wanted
	q.mu.wanted = steps.Demand{}
	return d
}

// during makes Add end a watch by cancel, until over is called.
func (q *demands) during(cancel func(error)) (over func()) {
	q.mu.Lock()
	q.mu.cancel = cancel
	waits := q.mu.wanted.Reason != ""
	q.mu.Unlock()
	if waits {
		cancel(steps.ErrDemanded)
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.mu.cancel = nil
	}
}
