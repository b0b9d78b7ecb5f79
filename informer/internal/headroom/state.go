// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package headroom

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// A list that does not fit is tried again after firstRetry, then after twice
	// as long each time, up to lastRetry: objects may have been deleted on the
	// server.
	firstRetry, lastRetry = 30 * time.Second, 10 * time.Minute
	// step is the least by which a claim grows beyond what its list holds, so
	// that not every object of a stream needs a decision.
	step = 256 << 10
)

// NoRoomError means that a list does not fit into the budget.
type NoRoomError struct {
	// Needs is about what the list takes in all, Budget what all caches of the
	// factory may take, Held what the others have. In bytes.
	Needs, Budget, Held int64
	// Least: it takes Needs or more.
	Least bool
	// Crowded: it may fit when other lists have been read. Otherwise it does not
	// fit by itself.
	Crowded bool
}

func (e *NoRoomError) Error() string {
	about := "about"
	if e.Least {
		about = "more than"
	}
	if e.Crowded {
		return fmt.Sprintf("needs %s %s of memory, and %s of the budget of %s are taken: waits until other lists have been read", about, Text(e.Needs), Text(e.Held), Text(e.Budget))
	}
	return fmt.Sprintf("needs %s %s of memory, but the budget is %s, of which %s are taken", about, Text(e.Needs), Text(e.Budget), Text(e.Held))
}

// Text returns a number of bytes in a readable unit.
func Text(bytes int64) string {
	switch {
	case bytes < 1e4:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1e7:
		return fmt.Sprintf("%d kB", (bytes+500)/1e3)
	case bytes < 1e10:
		return fmt.Sprintf("%d MB", (bytes+5e5)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
}

// claim is what the budget knows of one scope's lists.
type claim struct {
	need     int64 // of a list that was stopped; 0: unknown
	least    bool  // it needs that much or more
	failures int   // consecutive lists that did not fit by themselves
	retry    time.Time
	reserved int64 // for the list that is being read
}

// state decides which lists may be read. It is pure: time and what the stores
// hold are arguments.
type state struct {
	limit    int64
	reserved int64    // of all claims
	waiting  []*claim // in the order of arrival
}

// admit returns the claims whose lists may begin, the smallest first.
func (s *state) admit(held int64, now time.Time) (admitted []*claim) {
	order := slices.Clone(s.waiting)
	slices.SortStableFunc(order, func(a, b *claim) int { return cmp.Compare(a.need, b.need) })
	for _, c := range order {
		switch {
		case s.fits(c.need, held):
			s.reserve(c, c.need)
		case s.reserved > 0 || now.Before(c.retry):
			continue // the others will be stored, or it was tried just now
		}
		admitted = append(admitted, c)
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(c *claim) bool { return slices.Contains(admitted, c) })
	return admitted
}

func (s *state) fits(need, held int64) bool { return held+s.reserved+need <= s.limit }

func (s *state) reserve(c *claim, bytes int64) {
	s.reserved += bytes - c.reserved
	c.reserved = bytes
}

// grow decides about a list that has received so many bytes, and will have
// about estimate; 0: unknown.
func (s *state) grow(c *claim, received, estimate, held int64, random float64, now time.Time) error {
	least := estimate < received
	if least {
		estimate = received + min(step, s.limit/64)
	}
	others := s.reserved - c.reserved
	if held+others+estimate <= s.limit {
		s.reserve(c, estimate)
		return nil
	}
	c.need, c.least = estimate, least
	if others > 0 {
		return &NoRoomError{Needs: estimate, Least: least, Budget: s.limit, Held: held + others, Crowded: true}
	}
	if held+received <= s.limit && c.failures == 0 {
		s.reserve(c, s.limit-held) // an estimate may err, and there is nobody to wait for
		return nil
	}
	pause := min(firstRetry<<min(c.failures, 10), lastRetry)
	if least && c.failures == 0 {
		pause = 0 // the first page of the next list says what it needs
	}
	c.failures++
	c.retry = now.Add(pause/2 + time.Duration(random*float64(pause/2)))
	return &NoRoomError{Needs: estimate, Least: least, Budget: s.limit, Held: held}
}

// done releases what c holds. completed: its list is stored.
func (s *state) done(c *claim, completed bool) {
	s.reserve(c, 0)
	s.waiting = slices.DeleteFunc(s.waiting, func(w *claim) bool { return w == c })
	if completed {
		*c = claim{}
	}
}

// next returns when time alone may admit a claim; zero: never.
func (s *state) next(now time.Time) (at time.Time) {
	for _, c := range s.waiting {
		if c.retry.After(now) && (at.IsZero() || c.retry.Before(at)) {
			at = c.retry
		}
	}
	return at
}

// hold returns why c waits.
func (s *state) hold(c *claim, held int64, now time.Time) Hold {
	err := NoRoomError{Needs: c.need, Least: c.least, Budget: s.limit, Held: held + s.reserved, Crowded: s.reserved > 0 && held+c.need <= s.limit}
	h := Hold{Why: err.Error(), NoRoom: c.failures > 0}
	if c.retry.After(now) {
		h.Until = c.retry
	}
	return h
}

// Hold is why a list waits.
type Hold struct {
	Why   string
	Until time.Time // the next try; zero: when there is room
	// NoRoom: it has proved not to fit by itself.
	NoRoom bool
}
