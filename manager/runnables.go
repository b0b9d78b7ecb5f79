// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/health"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/reconcile"
)

// runnables is what has been added to a manager, by stage, and the informers of its factory.
type runnables struct {
	groups []*group // indexed like stages
	shared *informer.SharedInformerFactory
	mu     struct {
		sync.Mutex
		controllers map[string]Runnable // by the names in use
	}
}

func newRunnables() *runnables {
	r := &runnables{}
	r.mu.controllers = map[string]Runnable{}
	for _, stage := range stages {
		r.groups = append(r.groups, &group{stage: stage})
	}
	return r
}

// reserve takes the name of a controller, which labels its metrics.
func (r *runnables) reserve(one Runnable, name string) error {
	if _, isController := one.(Controller); !isController {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch other, taken := r.mu.controllers[name]; {
	case taken && same(one, other):
		return fmt.Errorf("add %s: this very controller has been added already; call Add once for each", name)
	case taken:
		return fmt.Errorf("add %s: a controller of that name has been added; give each its own, with reconcile.For in Options.Name "+
			"and with reconcile.New as its first argument, since logs and metrics tell them apart by it", name)
	}
	r.mu.controllers[name] = one
	return nil
}

func (r *runnables) release(one Runnable, name string) {
	if _, isController := one.(Controller); isController {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.mu.controllers, name)
	}
}

// same reports whether both are one Runnable. Functions cannot be compared.
func same(one, other Runnable) bool {
	return reflect.ValueOf(one).Comparable() && reflect.ValueOf(other).Comparable() && one == other
}

func (r *runnables) members() []member {
	var out []member
	for _, g := range r.groups {
		out = append(out, g.snapshot()...)
	}
	return out
}

// informers returns the factory's informers and those that were added, unless another replica may
// run them.
func (r *runnables) informers() []state.Informer {
	out := r.shared.Snapshot()
	for _, m := range r.members() {
		if i, ok := m.runnable.(Informer); ok && !m.elsewhere() {
			out = append(out, i.Snapshot())
		}
	}
	return out
}

// progress returns the progress of the factory's informers and of those that were
// added, unless another replica may run them.
func (r *runnables) progress() []informer.Progress {
	out := r.shared.Progress()
	for _, m := range r.members() {
		if i, ok := m.runnable.(Informer); ok && !m.elsewhere() {
			out = append(out, i.Progress())
		}
	}
	return out
}

func (r *runnables) controllers() []reconcile.Snapshot {
	var out []reconcile.Snapshot
	for _, m := range r.members() {
		if c, ok := m.runnable.(Controller); ok {
			out = append(out, c.Snapshot())
		}
	}
	return out
}

// workers returns the controllers for the checks of /livez.
func (r *runnables) workers() []health.Controller {
	var out []health.Controller
	for _, m := range r.members() {
		if c, ok := m.runnable.(Controller); ok {
			out = append(out, c)
		}
	}
	return out
}

// pausable returns the controllers that can be paused.
func (r *runnables) pausable() (out []inspect.Controllable) {
	for _, one := range r.members() {
		if c, ok := one.runnable.(inspect.Controllable); ok {
			out = append(out, c)
		}
	}
	return out
}
