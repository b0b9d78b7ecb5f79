// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/internal/stacks"
)

// taskProbe tracks a recurring task of a core. One goroutine at a time runs it.
type taskProbe struct {
	name  string
	made  time.Time
	begun atomic.Uint64
	since atomic.Int64 // nanoseconds since made; 0: not running
	by    atomic.Uint64
}

func newTaskProbe(name string) *taskProbe { return &taskProbe{name: name, made: time.Now()} }

// SetGoroutine records that the calling goroutine runs the task from now on.
func (h *taskProbe) SetGoroutine() { h.by.Store(uint64(stacks.Self())) }

// Begin records that the task has begun.
func (h *taskProbe) Begin() {
	h.begun.Add(1)
	h.since.Store(max(1, int64(time.Since(h.made))))
}

// End records that the task has ended.
func (h *taskProbe) End() { h.since.Store(0) }

func (h *taskProbe) task() Task {
	t := Task{Name: h.name, Begun: h.begun.Load(), Goroutine: h.by.Load()}
	if since := h.since.Load(); since != 0 {
		t.Running = max(1, time.Since(h.made)-time.Duration(since))
	}
	return t
}

// Task is a recurring task of an informer.
type Task struct {
	// Name of the task, such as "store a batch".
	Name string
	// Begun counts its starts.
	Begun uint64
	// Running is the duration of the present run; 0: idle.
	Running time.Duration
	// Goroutine is the number, in stack dumps, of the goroutine that runs it.
	Goroutine uint64
}
