// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/state"
)

// Progress is the present work of an informer. Unlike Snapshot it uses no lock
// that is held while user code runs, so it is always available.
type Progress struct {
	Kind schema.GroupVersionKind
	// Tasks that call user code: storing a batch, which calls index functions,
	// and transforming an object. A task that has never begun is omitted.
	Tasks []Task
	// Handlers in the order in which they joined.
	Handlers []state.Handler
}

// membership knows the tasks, handlers and scopes of a core. Its lock is never held
// while other code is called, so their state is available even while an index
// function hangs in the critical section.
type membership struct {
	mu struct {
		sync.Mutex
		probes  []*taskProbe
		members []*member
		scopes  []scopeView // by scope
		choices []choice    // of namespace selectors
	}
}

type scopeView struct {
	*watched
	reflector *reflector.Reflector
}

// choice is a namespace selector that a handle follows.
type choice struct {
	*following
	clusterWide, known bool
}

func (r *membership) show(scopes []scopeView, choices []choice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.scopes, r.mu.choices = scopes, choices
}

func (r *membership) shown() ([]scopeView, []choice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.scopes, r.mu.choices
}

func (r *membership) join(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.members = append(r.mu.members, m)
}

func (r *membership) leave(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.members = slices.DeleteFunc(r.mu.members, func(other *member) bool { return other == m })
}

func (r *membership) take(h *taskProbe) *taskProbe {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.probes = append(r.mu.probes, h)
	return h
}

func (r *membership) drop(ended map[*taskProbe]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.probes = slices.DeleteFunc(r.mu.probes, func(h *taskProbe) bool { return ended[h] })
}

func (r *membership) all() ([]*taskProbe, []*member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.probes), slices.Clone(r.mu.members)
}
