// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/reflector"
)

// Progress is the present work of an informer. Unlike Snapshot it uses no lock
// that is held while user code runs, so it is always available.
type Progress struct {
	Kind schema.GroupVersionKind
	// Tasks that call user code: storing a batch, which calls index functions,
	// and transforming an object. A task that has never begun is omitted.
	Tasks []Task
	// Handlers in the order in which they joined.
	Handlers []HandlerSnapshot
}

// roster knows the tasks, handlers and scopes of a core. Its lock is never held
// while other code is called, so their state is available even while an index
// function hangs in the critical section.
type roster struct {
	mu struct {
		sync.Mutex
		hands   []*hand
		members []*member
		seats   []seat   // by scope
		choices []choice // of namespace selectors
	}
}

type seat struct {
	*watched
	reflector *reflector.Reflector
}

// choice is a namespace selector that a handle follows.
type choice struct {
	*following
	clusterWide, known bool
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

func (r *roster) drop(hands map[*hand]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.hands = slices.DeleteFunc(r.mu.hands, func(h *hand) bool { return hands[h] })
}

func (r *roster) all() ([]*hand, []*member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.hands), slices.Clone(r.mu.members)
}
