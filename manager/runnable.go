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
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager/internal/election"
	"github.com/flyball-dev/flyball/manager/internal/serving"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/webhook"
)

// Runnable is run by a manager. Run blocks until ctx ends, or earlier when there is no
// more work, and returns only when everything that it started has ended. An error or a
// panic ends the manager with that reason; once ctx has ended, an error for which
// errors.Is(err, context.Canceled) holds does not count.
//
// If replicas share objects (Sharding.Shards), a Runnable of StageControllers that is not a
// Controller runs on one of them. Its context ends when another one is to run it, and its Run
// is called again when it comes back.
//
// A Runnable may implement further interfaces, which the manager uses:
//
//	Named        a name for errors, states and metrics
//	Validated    misuse, which Add returns
//	Synced       what readiness waits for
//	Started      what the next stage waits for
//	Standby      work that does not wait for leadership
//	Controller   a controller: metrics, readiness, liveness
//	Informer     an unshared informer: the same
//
// The context of Run carries the manager's logger, and for controllers its mutation
// detector and TracerProvider.
type Runnable interface {
	Run(ctx context.Context) error
}

// RunnableFunc adapts a function to a Runnable.
type RunnableFunc func(ctx context.Context) error

// Run calls f.
func (f RunnableFunc) Run(ctx context.Context) error { return f(ctx) }

// Named is a Runnable with a name. Others are called by their String or their type.
type Named interface{ Name() string }

// Validated is a Runnable that remembers misuse: Add returns it, and Run does.
type Validated interface{ Err() error }

// Synced is a Runnable that readiness waits for, by a channel that it closes. One that
// waits to lead is not waited for, unless it is a Standby.
type Synced interface{ Synced() <-chan struct{} }

// Started is a Runnable that the next stage waits for, by a channel that it closes. It is
// an error when Run returns before.
type Started interface{ Started() <-chan struct{} }

// Standby is a Runnable that prepares while another process leads. With leader election,
// and added to StageControllers, its Standby runs in StageStandby on every replica; Run
// begins when this process leads. It is not called if replicas share objects, since none waits.
type Standby interface {
	Standby(ctx context.Context) error
}

// Controller is a Runnable with workers. No two have one name, which labels their metrics.
// The manager is not ready while one is saturated, and not alive while one stands still.
// *reconcile.Controller is a Controller.
type Controller interface {
	Named
	// Snapshot is called for each scrape and each probe.
	Snapshot() reconcile.Snapshot
	// Stacks returns the stacks of the reconciles that have been running since before a
	// time, by their IDs: the answer of /livez shows them.
	Stacks(before time.Time) map[string]string
}

// Informer is a Runnable that keeps a cache of its own, outside of the manager's factory.
// *informer.SharedInformer, as informer.New returns it, is one.
type Informer interface {
	Snapshot() state.Informer
	Progress() informer.Progress
}

var (
	_ Controller = (*reconcile.Controller[string])(nil)
	_ Validated  = (*reconcile.Controller[string])(nil)
	_ Synced     = (*reconcile.Controller[string])(nil)
	_ Standby    = (*reconcile.Controller[string])(nil)

	_ Informer  = (*informer.SharedInformer[kube.Object])(nil)
	_ Validated = (*informer.SharedInformer[kube.Object])(nil)

	_ Named     = (*webhook.Server)(nil)
	_ Validated = (*webhook.Server)(nil)
	_ Started   = (*webhook.Server)(nil)

	_ Named   = (*serving.Server)(nil)
	_ Started = (*serving.Server)(nil)
	_ Named   = (*election.Elector)(nil)
	_ Started = (*election.Elector)(nil)
)

// Add runs r, usually a controller, in the last stage: when Run starts, or at once during Run. It
// does not block. It returns an error if r is nil or remembers misuse, if it is a controller whose
// name is taken, if it is one added during Run that needs what is on other replicas
// (Sharding.Shards), or if the manager is stopping or has stopped; Run also returns errors of
// earlier calls. r runs until its Run returns nil, Remove ends it or the manager stops; in the
// first two cases it is then forgotten.
func (m *Manager) Add(r Runnable) error { return m.AddTo(StageControllers, r) }

// AddTo is Add for any stage. Informers of the factory need not be added; one created
// with informer.New belongs in StageInformers.
func (m *Manager) AddTo(stage Stage, r Runnable) error {
	if m == nil {
		return errNil
	}
	err := m.add(stage, r)
	if err != nil {
		m.life.remember(err)
	}
	return err
}

// errNil is the error of a nil Manager.
var errNil = errors.New("the manager is nil: manager.New returned an error; check it")

func (m *Manager) add(stage Stage, r Runnable) error {
	i := slices.Index(stages[:], stage)
	if i < 0 {
		return fmt.Errorf("add to stage %q: there is no such stage; the stages are %v", stage, stages)
	}
	if isNil(r) {
		return fmt.Errorf("add to %s: the Runnable is nil (%T); pass one that is not nil", stage, r)
	}
	name := nameOf(r)
	if misused, ok := r.(Validated); ok {
		if err := misused.Err(); err != nil {
			return about("add", name, err)
		}
	}
	if m.life.stopping() != nil {
		return fmt.Errorf("add %s: %w", name, errStopped)
	}
	if c, is := r.(Controller); is && m.replicas != nil {
		joined, err := m.replicas.division.join(c.Snapshot())
		if err != nil {
			return fmt.Errorf("add %s: %w", name, err)
		}
		defer joined()
	}
	if err := m.runnables.reserve(r, name); err != nil {
		return err
	}
	m.pauses.Set(r)
	if err := m.join(i, r, name); err != nil {
		return fmt.Errorf("add %s: %w", name, errStopped)
	}
	m.pauses.Set(r) // of what was learned before it was a member
	return nil
}

// join runs r in the stage with index i, and before that its Standby, if it has one. When
// nothing of r is left, its name is free.
func (m *Manager) join(i int, r Runnable, name string) error {
	free := func() { m.runnables.release(r, name) }
	to := notices{fault: m.life.fault, late: m.late, forgotten: free}
	if s, ok := r.(Standby); ok && stages[i] == StageControllers && m.elector != nil {
		var parts atomic.Int32
		parts.Store(2)
		to.forgotten = func() {
			if parts.Add(-1) == 0 {
				free()
			}
		}
		at := m.runnables.groups[slices.Index(stages[:], StageStandby)]
		prepares, err := at.join(RunnableFunc(s.Standby), r, nil, name, to)
		if err != nil {
			free()
			return err
		}
		part := to.forgotten
		to.forgotten = func() {
			at.end(prepares) // what it prepares for has ended
			part()
		}
	}
	var only sole
	if _, isController := r.(Controller); !isController && m.replicas != nil && stages[i] == StageControllers {
		only = m.replicas.agent.Guard()
	}
	_, err := m.runnables.groups[i].join(r, r, only, name, to)
	return err
}

var errStopped = errors.New("the manager is stopping or has stopped")

// nameOf returns the name of r in errors and states.
func nameOf(r Runnable) string {
	name := fmt.Sprintf("%T", r)
	_, isController := r.(Controller)
	if n, ok := r.(Named); ok && (n.Name() != "" || isController) {
		name = n.Name()
	} else if s, ok := r.(fmt.Stringer); ok {
		name = s.String()
	}
	switch r.(type) {
	case Controller:
		return fmt.Sprintf("controller %q", name)
	case Informer:
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
