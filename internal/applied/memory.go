// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
)

// trusted is how long an answer is remembered.
const trusted = time.Hour

// Key of an apply. Later applies with the same key replace what earlier ones have claimed.
type Key struct {
	Kind        schema.GroupKind
	Object      kube.Key
	Owner       string
	Subresource string
}

// Known is an apply that was answered.
type Known struct {
	Wanted   Digest
	Answered State
	At       time.Time
}

// Memory of applies. The zero Memory is empty. It has at most twice as many entries as
// applies with different keys were sent in an hour, and some 300 bytes each.
type Memory struct {
	mu struct {
		sync.Mutex
		applies map[Key]*apply
		sweepAt int // entries
	}
}

// apply is the last apply of a key, or those on their way.
type apply struct {
	known      Known
	knows      bool
	sent       int  // on their way
	overlapped bool // two were on their way at the same time
}

// minSweep is the least number of entries among which old ones are looked for.
const minSweep = 64

// Wants reports whether the apply of key that was last answered, if it is still remembered,
// wanted the same. If so, Knows must be asked with the present state of the object.
func (m *Memory) Wants(key Key, wanted Digest, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.knownLocked(key, wanted, now) != nil
}

// Knows reports whether the outcome of the apply of wanted to an object that is now in a
// state is known: it would change nothing.
func (m *Memory) Knows(key Key, wanted Digest, state State, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.knownLocked(key, wanted, now)
	if a == nil || !state.follows(a.known.Answered) {
		return false
	}
	a.known.Answered = state // the next difference counts from here
	return true
}

// knownLocked returns the apply of key if its answer is remembered, and it wanted the same.
func (m *Memory) knownLocked(key Key, wanted Digest, now time.Time) *apply {
	a := m.mu.applies[key]
	if a == nil || !a.knows || a.known.Wanted != wanted || now.Sub(a.known.At) >= trusted {
		return nil
	}
	return a
}

// Begin must be called before an apply of key is sent, whatever it wants: until its end
// nothing is known. end must be called when it has ended. known is what was answered; nil:
// an error, or something that must not be remembered.
func (m *Memory) Begin(key Key, now time.Time) (end func(known *Known)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweepLocked(now)
	a := m.mu.applies[key]
	if a == nil {
		a = &apply{}
		if m.mu.applies == nil {
			m.mu.applies = make(map[Key]*apply)
		}
		m.mu.applies[key] = a
	}
	a.known, a.knows = Known{}, false
	a.overlapped = a.overlapped || a.sent > 0
	a.sent++
	return func(known *Known) { m.end(key, a, known) }
}

func (m *Memory) end(key Key, a *apply, known *Known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.sent--
	// The server may have carried out two in another order than that of their answers.
	if known != nil && !a.overlapped {
		a.known, a.knows = *known, true
	}
	if a.sent > 0 {
		return
	}
	a.overlapped = false
	if !a.knows {
		delete(m.mu.applies, key)
	}
}

// sweepLocked drops what is not trusted any more, whenever the number of entries has doubled.
func (m *Memory) sweepLocked(now time.Time) {
	if len(m.mu.applies) < max(m.mu.sweepAt, minSweep) {
		return
	}
	for key, a := range m.mu.applies {
		if a.sent == 0 && now.Sub(a.known.At) >= trusted {
			delete(m.mu.applies, key)
		}
	}
	m.mu.sweepAt = 2 * len(m.mu.applies)
}

// Len returns the number of entries.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.mu.applies)
}
