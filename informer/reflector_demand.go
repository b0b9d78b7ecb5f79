// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"sync"
)

// errDemanded ends a watch because a list is wanted.
var errDemanded = errors.New("the scope is to be listed anew")

// demand is a list that somebody else than the Reflector wants of its scope.
type demand struct {
	reason  string // as ScopeState.Relists counts it; empty: none
	content bool   // compare by content
	repair  bool   // of differences that an audit has found
	epoch   bool   // it is proved that the server's versions went back
	// elsewhere: over another connection.
	elsewhere bool
}

// and is one list that serves both demands.
func (d demand) and(e demand) demand {
	if d.reason == "" {
		d.reason = e.reason
	}
	d.content, d.repair, d.epoch = d.content || e.content, d.repair || e.repair, d.epoch || e.epoch
	d.elsewhere = d.elsewhere || e.elsewhere
	return d
}

// demands take what is wanted to the Reflector's goroutine. Safe for concurrent
// use.
type demands struct {
	mu struct {
		sync.Mutex
		wanted demand
		cancel func(error) // of the open watch; nil: there is none
	}
}

// add wants a list. An open watch ends for it.
func (q *demands) add(d demand) {
	q.mu.Lock()
	q.mu.wanted = q.mu.wanted.and(d)
	cancel := q.mu.cancel
	q.mu.Unlock()
	if cancel != nil {
		cancel(errDemanded)
	}
}

// take is what is wanted since the last call.
func (q *demands) take() demand {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.mu.wanted
	q.mu.wanted = demand{}
	return d
}

// during has add end a watch by cancel, until the returned function is called.
func (q *demands) during(cancel func(error)) (over func()) {
	q.mu.Lock()
	q.mu.cancel = cancel
	waits := q.mu.wanted.reason != ""
	q.mu.Unlock()
	if waits {
		cancel(errDemanded)
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.mu.cancel = nil
	}
}
