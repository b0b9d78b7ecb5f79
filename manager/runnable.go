// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
)

// Runnable is run by a manager. Run blocks until ctx ends, or earlier when there is no
// more work, and returns only when everything that it started has ended. An error or a
// panic ends the manager with that reason; once ctx has ended, an error for which
// errors.Is(err, context.Canceled) holds does not count.
//
// A Runnable may have further methods, which the manager uses:
//
//	Name() string                  its name in errors, states, metrics
//	Err() error                    misuse that it remembers: Add returns it
//	Synced() <-chan struct{}       the manager is not ready before, unless this waits
//	                               to lead and has no Standby
//	Started() <-chan struct{}      the next stage does not start before
//	Standby(ctx) error             with leader election: runs in StageStandby if it
//	                               was added to StageControllers, and prepares for
//	                               Run, which runs when this process leads
//	Snapshot() reconcile.Snapshot  a controller: its name is unique, its numbers
//	                               are metrics, and a stuck reconcile fails /livez
//	Stacks(before time.Time) map[string]string
//	                               of the reconciles that run since before then, by
//	                               ID: the answer of /livez shows them
//	Snapshot() informer.Snapshot   an unshared informer
//	Progress() informer.Progress   its current work, for /livez
type Runnable interface {
	Run(ctx context.Context) error
}

// RunnableFunc adapts a function to a Runnable.
type RunnableFunc func(ctx context.Context) error

// Run calls f.
func (f RunnableFunc) Run(ctx context.Context) error { return f(ctx) }

type (
	named     interface{ Name() string }
	misusable interface{ Err() error }
	syncable  interface{ Synced() <-chan struct{} }
	starter   interface{ Started() <-chan struct{} }
	standby   interface {
		Standby(ctx context.Context) error
	}
	controller     interface{ Snapshot() reconcile.Snapshot }
	lonelyInformer interface{ Snapshot() informer.Snapshot }
	progressing    interface{ Progress() informer.Progress }
)

// Add runs r, usually a controller, in the last stage: when Run starts, or at once
// during Run. It does not block. It returns an error if r is nil or remembers misuse,
// if it is a controller whose name is taken, or if the manager is stopping or has
// stopped; Run also returns errors of earlier calls.
func (m *Manager) Add(r Runnable) error { return m.AddTo(StageControllers, r) }

// AddTo is Add for any stage. Informers of the factory need not be added; one created
// with informer.New belongs in StageInformers.
func (m *Manager) AddTo(stage Stage, r Runnable) error {
	err := m.add(stage, r)
	if err != nil {
		m.remember(err)
	}
	return err
}

func (m *Manager) add(stage Stage, r Runnable) error {
	i := slices.Index(stages[:], stage)
	if i < 0 {
		return fmt.Errorf("add to stage %q: there is no such stage; the stages are %v", stage, stages)
	}
	if isNil(r) {
		return fmt.Errorf("add to %s: the Runnable is nil (%T); pass one that is not nil", stage, r)
	}
	name := nameOf(r)
	if misused, ok := r.(misusable); ok {
		if err := misused.Err(); err != nil {
			return about("add", name, err)
		}
	}
	if err := m.reserve(r, name); err != nil {
		return err
	}
	if err := m.join(i, r, name); err != nil {
		m.release(r, name)
		return fmt.Errorf("add %s: %w", name, errStopped)
	}
	return nil
}

// join runs r in the stage with index i, and before that its Standby, if it has one.
func (m *Manager) join(i int, r Runnable, name string) error {
	if s, ok := r.(standby); ok && stages[i] == StageControllers && m.elector != nil {
		at := slices.Index(stages[:], StageStandby)
		if err := m.groups[at].join(RunnableFunc(s.Standby), name, m.fault); err != nil {
			return err
		}
	}
	return m.groups[i].join(r, name, m.fault)
}

// reserve takes the name of a controller, which labels its metrics.
func (m *Manager) reserve(r Runnable, name string) error {
	_, isController := r.(controller)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.mu.phase == PhaseStopping, m.mu.phase == PhaseStopped:
		return fmt.Errorf("add %s: %w", name, errStopped)
	case !isController:
		return nil
	case m.mu.controllers[name]:
		return fmt.Errorf("add %s: a controller of that name has been added; give each its own in reconcile.New, since logs and metrics tell them apart by it", name)
	}
	m.mu.controllers[name] = true
	return nil
}

func (m *Manager) release(r Runnable, name string) {
	if _, isController := r.(controller); isController {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.mu.controllers, name)
	}
}

var errStopped = errors.New("the manager is stopping or has stopped")

// nameOf returns the name of r in errors and states.
func nameOf(r Runnable) string {
	name := fmt.Sprintf("%T", r)
	_, isController := r.(controller)
	if n, ok := r.(named); ok && (n.Name() != "" || isController) {
		name = n.Name()
	} else if s, ok := r.(fmt.Stringer); ok {
		name = s.String()
	}
	switch r.(type) {
	case controller:
		return fmt.Sprintf("controller %q", name)
	case lonelyInformer:
		return "informer of " + name
	}
	return name
}

// about prefixes err with verb and name, unless err starts with the name.
func about(verb, name string, err error) error {
	if strings.HasPrefix(err.Error(), name) {
		return fmt.Errorf("%s %w", verb, err)
	}
	return fmt.Errorf("%s %s: %w", verb, name, err)
}

// isNil reports whether r is nil, or an interface that holds a nil pointer or function,
// whose methods cannot be called.
func isNil(r any) bool {
	if r == nil {
		return true
	}
	switch v := reflect.ValueOf(r); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return v.IsNil()
	}
	return false
}
