// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/internal/taskgroup"
)

// Stage is a part of a manager that starts and stops as one.
type Stage string

// The stages that a Runnable can be added to.
const (
	// StageServers serves health and metrics.
	StageServers Stage = "servers"
	// StageWebhooks serves the API server, on every replica, and installs the
	// CustomResourceDefinitions of Options.InstallCRDs.
	StageWebhooks Stage = "webhooks"
	// StageInformers keeps the local copies of objects.
	StageInformers Stage = "informers"
	// StageStandby runs on every replica, leading or not.
	StageStandby Stage = "standby"
	// StageLeadership has started when this process leads. It is empty without leader
	// election.
	StageLeadership Stage = "leadership"
	// StageControllers runs on the leader. Add uses it.
	StageControllers Stage = "controllers"
)

// stages is the start order: each starts when all members of the one above have
// started. They stop in reverse, each when all members of the one below have ended.
var stages = [...]Stage{
	StageServers,     // first, so that probes and scrapes are always answered
	StageWebhooks,    // before the informers: the server may need them to list a kind
	StageInformers,   // not awaited: each controller waits for its own sources
	StageStandby,     // before leadership, so that a new leader is warm
	StageLeadership,  // ends when everything it guards has ended
	StageControllers, // last, so that they stop first and drain while the rest runs
}

type group struct {
	stage Stage
	tasks taskgroup.Group

	mu struct {
		sync.Mutex
		members []*member
	}
}

// member is one Runnable of a group with its state; the group's lock guards the mutable
// fields.
type member struct {
	runnable  Runnable
	owner     Runnable // what was added: runnable, or what it is the Standby of
	only      sole     // not nil: it runs on one replica alone
	name      string
	entered   chan struct{} // closed when its Run is called
	gone      chan struct{} // closed when it is forgotten
	state     RunState
	since     time.Time
	err       error
	task      *taskgroup.Member // nil until it has joined
	leaving   bool              // it was removed
	abandoned bool              // Remove no longer waits for it
	to        notices
}

// sole calls run on the one replica that holds a shard, while it does. *ownership.Guard is one.
type sole interface {
	Alone(ctx context.Context, shard int, run func(ctx context.Context) error) error
}

// elsewhere reports whether it runs on one replica alone, and not on this one now.
func (r member) elsewhere() bool { return r.only != nil && r.state == RunWaiting }

// notices are what a group calls about a member, without its lock.
type notices struct {
	fault     func(error) // an error or panic that ends the manager
	late      func(error) // one after the removal, if Remove has returned
	forgotten func()      // nothing of the member is left
}

// join runs r in the group: now, or when the group starts. only is as in member.
func (g *group) join(r, owner Runnable, only sole, name string, to notices) (*member, error) {
	m := &member{
		runnable: r, owner: owner, only: only, name: name, state: RunWaiting, since: time.Now(), to: to,
		entered: make(chan struct{}), gone: make(chan struct{}),
	}
	g.mu.Lock()
	g.mu.members = append(g.mu.members, m)
	g.mu.Unlock()
	task, err := g.tasks.Spawn(func(ctx context.Context) error {
		g.live(ctx, m)
		return nil
	})
	if err != nil {
		g.forget(m)
		return nil, err
	}
	g.mu.Lock()
	m.task = task
	g.mu.Unlock()
	return m, nil
}

// live runs m. The state of a member that ends with the group, or whose error ends the
// manager, remains for the last Snapshot; any other is forgotten.
func (g *group) live(ctx context.Context, m *member) {
	if m.only == nil {
		g.set(m, RunRunning, nil)
	}
	close(m.entered)
	err := cmp.Or(g.work(ctx, m), neverStarted(ctx, m.runnable))
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // the expected end
	}
	if err != nil {
		err = about("run", m.name, err)
	}
	leaving, abandoned := g.set(m, RunEnded, err)
	switch {
	case leaving && abandoned && err != nil:
		m.to.late(err)
	case err != nil && !leaving:
		m.to.fault(err)
		return
	case !leaving && ctx.Err() != nil:
		return
	}
	g.forget(m)
}

// work runs m; one that runs on one replica alone whenever that is this one, while it waits
// otherwise.
func (g *group) work(ctx context.Context, m *member) error {
	if m.only == nil {
		return guarded(ctx, m.runnable)
	}
	return m.only.Alone(ctx, 0, func(ctx context.Context) error {
		g.set(m, RunRunning, nil)
		defer g.set(m, RunWaiting, nil)
		return guarded(ctx, m.runnable)
	})
}

// guarded runs r and converts a panic to an error with the stack.
func guarded(ctx context.Context, r Runnable) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.Run(ctx)
}

// neverStarted returns an error for a Runnable that ended while the next stage still
// waits for it to start.
func neverStarted(ctx context.Context, r Runnable) error {
	s, ok := r.(Started)
	if !ok || ctx.Err() != nil {
		return nil
	}
	select {
	case <-s.Started():
		return nil
	default:
		return errors.New("its Run returned before its Started channel was closed, so the next stage could never start")
	}
}

func (g *group) set(m *member, state RunState, err error) (leaving, abandoned bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.state, m.since, m.err = state, time.Now(), err
	return m.leaving, m.abandoned
}

// forget drops m. Only the first call has an effect.
func (g *group) forget(m *member) {
	g.mu.Lock()
	at := slices.Index(g.mu.members, m)
	if at >= 0 {
		g.mu.members = slices.Delete(g.mu.members, at, at+1)
	}
	g.mu.Unlock()
	if at < 0 {
		return
	}
	m.to.forgotten()
	close(m.gone)
}

// run runs the members until ctx ends, and returns when all have ended.
func (g *group) run(ctx context.Context) {
	// Members report their errors themselves; the only other error is a second run,
	// which Manager.Run prevents.
	_ = g.tasks.Run(ctx)
}

// opened blocks until the members have started, which the next stage waits for: their
// Run is called, and the Started channel is closed, unless another replica may run them.
// It reports false if ctx ends first.
func (g *group) opened(ctx context.Context) bool {
	for _, m := range g.snapshot() {
		waits := []<-chan struct{}{m.entered}
		if s, ok := m.runnable.(Started); ok && m.only == nil {
			waits = append(waits, s.Started())
		}
		for _, started := range waits {
			select {
			case <-started:
			case <-m.gone:
			case <-ctx.Done():
				return false
			}
		}
	}
	return ctx.Err() == nil
}

// running returns the names of the members that have not ended.
func (g *group) running() []string {
	var out []string
	for _, m := range g.snapshot() {
		if m.state == RunRunning {
			out = append(out, fmt.Sprintf("%s (%s)", m.name, g.stage))
		}
	}
	return out
}

func (g *group) snapshot() []member {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]member, len(g.mu.members))
	for i, m := range g.mu.members {
		out[i] = *m
	}
	return out
}
