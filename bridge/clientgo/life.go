// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import "sync"

// life tracks whether an adapter runs, and its handlers.
type life struct {
	mu struct {
		sync.Mutex
		begun, ended bool
		handlers     map[*registration]bool
	}
}

// begin reports whether this is its first call.
func (l *life) begin() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first = !l.mu.begun
	l.mu.begun = true
	return first
}

func (l *life) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.ended
}

// add makes r end with the adapter. It returns false if that has ended.
func (l *life) add(r *registration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.ended {
		return false
	}
	if l.mu.handlers == nil {
		l.mu.handlers = make(map[*registration]bool)
	}
	l.mu.handlers[r] = true
	return true
}

func (l *life) drop(r *registration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.handlers, r)
}

// end removes the handlers and waits for running calls.
func (l *life) end() {
	l.mu.Lock()
	handlers := l.mu.handlers
	l.mu.ended, l.mu.handlers = true, nil
	l.mu.Unlock()
	for r := range handlers {
		r.remove()
	}
	for r := range handlers {
		<-r.shutdown
	}
}
