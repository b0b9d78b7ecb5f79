// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/internal/stacks"
)

// hand is a task of a core. One goroutine at a time begins and ends it.
type hand struct {
	name  string
	made  time.Time
	begun atomic.Uint64
	since atomic.Int64 // nanoseconds after made; 0: not running
	by    atomic.Uint64
}

func newHand(name string) *hand { return &hand{name: name, made: time.Now()} }

// takenUp notes that the calling goroutine runs the task from now on.
func (h *hand) takenUp() { h.by.Store(uint64(stacks.Self())) }

// begin notes the beginning of a task, and end its end.
func (h *hand) begin() {
	h.begun.Add(1)
	h.since.Store(max(1, int64(time.Since(h.made))))
}

func (h *hand) end() { h.since.Store(0) }

func (h *hand) task() Task {
	t := Task{Name: h.name, Begun: h.begun.Load(), Goroutine: h.by.Load()}
	if since := h.since.Load(); since != 0 {
		t.Running = max(1, time.Since(h.made)-time.Duration(since))
	}
	return t
}

// Task is something that an informer does again and again.
type Task struct {
	// Name of the task, such as "store a batch".
	Name string
	// Begun counts how often it was begun.
	Begun uint64
	// Running is how long it has been running; 0: it waits for something to do.
	Running time.Duration
	// Goroutine that runs it, by its number in stack dumps.
	Goroutine uint64
}
