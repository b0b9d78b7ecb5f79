// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/internal/stacks"
)

// Progress says what an informer has in hand. Unlike a Snapshot it can always be
// taken: it waits for no lock that is held while the program's functions are called.
type Progress struct {
	Kind schema.GroupVersionKind
	// Tasks of the informer that call the program's functions: storing a batch, which
	// calls index functions, and transforming an object. One that has never begun is
	// left out.
	Tasks []Task
	// Handlers in the order in which they joined.
	Handlers []HandlerSnapshot
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

// Progress says what the informer has in hand.
func (i *SharedInformer[T]) Progress() Progress { return i.core.progress() }

// Progress says what each informer has in hand, in the order they were asked for.
func (f *SharedInformerFactory) Progress() []Progress {
	cores := f.cores()
	out := make([]Progress, 0, len(cores))
	for _, c := range cores {
		out = append(out, c.progress())
	}
	return out
}

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

// roster knows the tasks, handlers and scopes of a core by a lock of its own, which
// nobody holds while calling anything: so where they stand can be said while an index
// function hangs in the critical section.
type roster struct {
	mu struct {
		sync.Mutex
		hands   []*hand
		members []*member
		seats   []seat   // by scope
		choices []choice // of namespaces
	}
}

// seat is a scope that is watched.
type seat struct {
	*watched
	reflector *reflector.Reflector[Object]
}

// choice is a choice of namespaces that a handle follows.
type choice struct {
	*following
	clusterWide, known bool
}

// showLocked has the roster know the scopes and choices that there are now.
func (c *core) showLocked() {
	var seats []seat
	for _, w := range c.critical.byID {
		if w != nil {
			seats = append(seats, seat{w, w.reflector})
		}
	}
	var choices []choice
	for _, h := range c.critical.handles {
		for _, f := range h.follows {
			choices = append(choices, choice{f, h.clusterWide, f.known})
		}
	}
	c.roster.show(seats, choices)
}

func (r *roster) show(seats []seat, choices []choice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.seats, r.mu.choices = seats, choices
}

func (r *roster) shown() ([]seat, []choice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.seats, r.mu.choices
}

func (r *roster) join(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.members = append(r.mu.members, m)
}

func (r *roster) leave(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.members = slices.DeleteFunc(r.mu.members, func(other *member) bool { return other == m })
}

func (r *roster) take(h *hand) *hand {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.hands = append(r.mu.hands, h)
	return h
}

func (r *roster) drop(h *hand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.hands = slices.DeleteFunc(r.mu.hands, func(other *hand) bool { return other == h })
}

func (r *roster) all() ([]*hand, []*member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.hands), slices.Clone(r.mu.members)
}

func (c *core) progress() Progress {
	p := Progress{Kind: c.gvk()}
	hands, members := c.roster.all()
	for _, h := range hands {
		if t := h.task(); t.Begun > 0 {
			p.Tasks = append(p.Tasks, t)
		}
	}
	for _, m := range members {
		p.Handlers = append(p.Handlers, m.snapshot())
	}
	return p
}
