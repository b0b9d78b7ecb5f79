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

	"github.com/flyball-dev/flyball/internal/nursery"
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
	stage   Stage
	nursery nursery.Nursery

	mu struct {
		sync.Mutex
		members []*member
	}
}

// member is one Runnable of a group with its state; the group's lock guards the mutable
// fields.
type member struct {
	runnable Runnable
	name     string
	entered  chan struct{} // closed when its Run is called
	state    RunState
	since    time.Time
	err      error
}

// join runs r in the group: now, or when the group starts. fault receives an error or
// panic of r.
func (g *group) join(r Runnable, name string, fault func(error)) error {
	m := &member{runnable: r, name: name, entered: make(chan struct{}), state: RunWaiting, since: time.Now()}
	g.mu.Lock()
	g.mu.members = append(g.mu.members, m)
	g.mu.Unlock()
	err := g.nursery.Go(func(ctx context.Context) error {
		g.set(m, RunRunning, nil)
		close(m.entered)
		err := cmp.Or(guarded(ctx, r), neverStarted(ctx, r))
		if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil // the expected end
		}
		if err != nil {
			err = about("run", name, err)
		}
		g.set(m, RunEnded, err)
		if err != nil {
			fault(err)
		}
		return nil
	})
	if err != nil {
		g.drop(m)
	}
	return err
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

func (g *group) set(m *member, state RunState, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.state, m.since, m.err = state, time.Now(), err
}

func (g *group) drop(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.members = slices.DeleteFunc(g.mu.members, func(other *member) bool { return other == m })
}

// run runs the members until ctx ends, and returns when all have ended.
func (g *group) run(ctx context.Context) {
	// Members report their errors themselves; the only other error is a second run,
	// which Manager.Run prevents.
	_ = g.nursery.Run(ctx)
}

// started returns what the next stage waits for: the call of each member's Run, and its
// Started channel.
func (g *group) started() []<-chan struct{} {
	var out []<-chan struct{}
	for _, m := range g.snapshot() {
		out = append(out, m.entered)
		if s, ok := m.runnable.(Started); ok {
			out = append(out, s.Started())
		}
	}
	return out
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
