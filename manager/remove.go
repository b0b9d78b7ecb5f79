// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/flyball-dev/flyball/internal/health"
)

// Remove ends r, which Add or AddTo has added, and returns when r has ended: with the
// error of its Run, or that of ctx if ctx ends first. Nothing of r is left then: its checks
// and series are gone, and another Runnable may have its name. A controller drains as at
// the manager's stop; informers that only it has used need their Release. r cannot be added
// again. Remove returns nil at once if r has ended before; it is an error if r is nil or
// cannot be compared, such as a RunnableFunc, which ends by returning. Code that r runs
// must not call Remove(r), which would wait for itself.
func (m *Manager) Remove(ctx context.Context, r Runnable) error {
	switch {
	case isNil(r):
		return fmt.Errorf("remove: the Runnable is nil (%T)", r)
	case !reflect.ValueOf(r).Comparable():
		return fmt.Errorf("remove %s: values of this type cannot be compared; add a pointer, or let its Run return", nameOf(r))
	case r == Runnable(m.webhookServer()):
		return fmt.Errorf("remove %s: it ends with the manager", nameOf(r))
	}
	var failed []error
	for _, g := range slices.Backward(m.runnables.groups) {
		for _, one := range g.of(r) {
			failed = append(failed, g.remove(ctx, one))
		}
	}
	return errors.Join(failed...)
}

// late logs an error for which no Remove waits.
func (m *Manager) late(err error) {
	m.log.Error(err, "What was removed has ended with an error")
}

// RemoveChecks removes the checks that AddReadyCheck and AddLiveCheck have added under
// name.
func (m *Manager) RemoveChecks(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	named := func(c health.Check) bool { return c.Name == name }
	m.mu.ready = slices.DeleteFunc(m.mu.ready, named)
	m.mu.live = slices.DeleteFunc(m.mu.live, named)
}

// end ends m, without waiting.
func (g *group) end(m *member) {
	g.mu.Lock()
	m.leaving = true
	task := m.task
	g.mu.Unlock()
	task.Cancel()
	if !task.Started() {
		g.forget(m)
	}
}

// remove ends m and waits until it has ended. It returns its error, or that of ctx if ctx
// ends first.
func (g *group) remove(ctx context.Context, m *member) error {
	g.end(m)
	select {
	case <-m.task.Done():
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.state != RunRunning {
		return m.err
	}
	m.abandoned = true
	return fmt.Errorf("remove %s: it has not ended yet: %w", m.name, context.Cause(ctx))
}

// of returns the members that were added as r.
func (g *group) of(r Runnable) []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []*member
	for _, m := range g.mu.members {
		if m.task != nil && same(m.owner, r) {
			out = append(out, m)
		}
	}
	return out
}
