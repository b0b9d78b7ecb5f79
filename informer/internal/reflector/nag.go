// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"sync"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

const (
	firstNag = 5 * time.Minute
	lastNag  = 24 * time.Hour
	// namedScopes of a kind are logged one by one between two reminders.
	namedScopes = 5
)

// nag says which of the complaints of one kind are logged: the first, and while the
// trouble lasts or comes again, ever more rarely. It has no lock and no clock.
type nag struct {
	next time.Time // from when another is logged
	gap  time.Duration
	run  int // of troubles; the first is 1
}

// due reports whether a complaint at now is logged. After twice the pause without any
// the trouble is a new one.
func (n *nag) due(now time.Time) bool {
	if !n.next.IsZero() && now.Before(n.next) {
		return false
	}
	if n.gap == 0 || now.Sub(n.next) > 2*n.gap {
		n.gap = firstNag
		n.run++
	} else {
		n.gap = min(3*n.gap, lastNag)
	}
	n.next = now.Add(n.gap)
	return true
}

// Nags say which of the complaints of all scopes of one kind are logged. The zero
// value is ready. It is safe for concurrent use.
type Nags struct {
	mu struct {
		sync.Mutex
		states     map[base.State]*complaints
		troubled   int  // scopes
		complained bool // of one of them at least
	}
}

// complaints are those of the scopes that are in one state.
type complaints struct {
	nag
	scopes int
	named  int // since the last reminder
}

// nagged is what Nags keep of one scope.
type nagged struct {
	in         base.State         // the trouble it is counted in; "": none
	told       map[base.State]int // the run of each trouble that it has complained of
	complained bool               // of what is wrong now, or was last
}

// trouble: the scope is in a state that says what is wrong. It reports whether that
// is logged, and how many scopes are in that state. A reminder is for all of them;
// between two reminders a few scopes are named whose trouble is new.
func (n *Nags) trouble(s *nagged, state base.State, now time.Time) (logged bool, scopes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leaveLocked(s)
	c := n.mu.states[state]
	if c == nil {
		if n.mu.states == nil {
			n.mu.states = map[base.State]*complaints{}
		}
		c = &complaints{}
		n.mu.states[state] = c
	}
	c.scopes++
	n.mu.troubled++
	s.in = state
	due := c.due(now)
	if due {
		c.named = 0
	}
	if s.told == nil {
		s.told = map[base.State]int{}
	}
	named := s.told[state] != c.run && c.named < namedScopes
	s.told[state] = c.run
	if !due && !named {
		return false, c.scopes
	}
	c.named++
	s.complained, n.mu.complained = true, true
	return true, c.scopes
}

// over: the scope is up to date, or has ended. It reports whether that is logged: if
// the scope has complained, or if it is the last of its kind that was in trouble.
// left: how many still are.
func (n *Nags) over(s *nagged) (logged bool, left int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := s.in != ""
	n.leaveLocked(s)
	logged = s.complained || was && n.mu.troubled == 0 && n.mu.complained
	s.complained = false
	if n.mu.troubled == 0 {
		n.mu.complained = false
	}
	return logged, n.mu.troubled
}

func (n *Nags) leaveLocked(s *nagged) {
	if s.in != "" {
		n.mu.states[s.in].scopes--
		n.mu.troubled--
		s.in = ""
	}
}
