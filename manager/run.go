// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/manager/internal/election"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// lastMoment is how long Runnables have to return after the grace period has passed and
// their contexts have ended.
const lastMoment = time.Second

// ErrStillRunning is wrapped by the error of Run when something did not end within
// Options.GracePeriod and is left behind.
var ErrStillRunning = errors.New("still running after the grace period")

// running is a stage that has been started.
type running struct {
	group *group
	end   context.CancelCauseFunc
	ended <-chan struct{}
}

// Run starts the stages in order and blocks until ctx ends or a Runnable returns an
// error; then it stops the stages in reverse and returns when all have ended. It
// returns that error, joined with those of the stop, or nil if ctx ended it. If
// something does not end within Options.GracePeriod, it is left behind, and the error
// names it and wraps ErrStillRunning: the process should end then. With leader election
// Run waits in StageLeadership until this process leads, and returns ErrLeadershipLost
// when it no longer does. Run runs once; it returns an error if an earlier Add failed.
func (m *Manager) Run(ctx context.Context) error {
	if m == nil {
		return errNil
	}
	asked := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := m.begin(fail); err != nil {
		return err
	}
	ctx = logr.NewContext(ctx, m.Logger())
	ctx = contextvalues.WithInstruments(ctx, m.instruments())
	ctx = recording.With(ctx, &m.windows)
	defer context.AfterFunc(ctx, m.windows.Stop)()

	var all sync.WaitGroup
	all.Go(func() { m.pulse.Watch(ctx, m.log) })
	all.Go(func() { m.unread.watch(ctx, m.log, m.informerStates) })
	if m.replicas != nil {
		all.Go(func() { m.replicas.fillGaps(ctx) })
	}
	var started []running
	for _, g := range m.runnables.groups {
		// A stage ends when its turn comes, not when ctx does.
		stageCtx, end := context.WithCancelCause(context.WithoutCancel(ctx))
		defer end(nil)
		ended := make(chan struct{})
		all.Go(func() {
			defer close(ended)
			g.run(stageCtx)
		})
		started = append(started, running{g, end, ended})
		if !g.opened(ctx) {
			break
		}
	}
	if ctx.Err() == nil {
		m.announce()
	}
	<-ctx.Done()

	m.log.Info("Stopping the manager", "reason", why(asked), "gracePeriod", m.life.grace.String())
	m.life.enter(PhaseStopping)
	if hooks := m.webhookServer(); hooks != nil {
		hooks.Drain()
	}
	if m.replicas != nil {
		m.replicas.agent.Leave() // shards without reconciles move at once
	}
	left := stop(started, m.life.cutOff(), m.life.grace)
	m.life.enter(PhaseStopped)
	if len(left) > 0 {
		return errors.Join(m.life.reason(), fmt.Errorf("stop manager: %w of %v: %s; they ignore their context",
			ErrStillRunning, m.life.grace, strings.Join(left, ", ")))
	}
	all.Wait()
	m.requests.CloseIdle()
	return m.life.reason()
}

// instruments returns what controllers get from the context of their Run.
func (m *Manager) instruments() contextvalues.Instruments {
	given := contextvalues.Instruments{TracerProvider: m.traces, CutOff: m.life.unled.c}
	if m.replicas != nil {
		given.Shards = m.replicas.agent.Guard()
	}
	if detector := m.informers.MutationDetector(); detector != nil {
		given.Witness = detector
	}
	return given
}

// announce logs that everything has started.
func (m *Manager) announce() {
	values := []any{"server", m.guardedConfig.Host}
	if m.metrics != nil {
		values = append(values, "metrics", m.metrics.Addr())
		if m.console != "" {
			values = append(values, "console", m.console+m.metrics.Addr()+inspect.Root)
		}
	}
	if m.health != nil {
		values = append(values, "health", m.health.Addr())
	}
	m.log.Info("Started the manager", values...)
	if m.probesForKubelet {
		m.log.Info("Serving probes on all interfaces, since the kubelet of a Pod asks from outside; -health-probe-bind-address sets another address",
			"address", m.health.Addr())
	}
	if m.shard != "" {
		m.log.Info("Acting on the objects of one shard", "selector", m.shard)
	}
	if log := m.log.V(1); log.Enabled() {
		log.Info("Start order", "stages", m.Snapshot().String())
	}
}

// why returns the reason of a stop, for the log. An error is not logged, because Run
// returns it.
func why(asked context.Context) string {
	if err := context.Cause(asked); err != nil {
		return err.Error()
	}
	return "something that runs has failed"
}

// begin starts the manager's only run, unless there was misuse.
func (m *Manager) begin(fail context.CancelCauseFunc) error {
	if hooks := m.webhookServer(); hooks != nil {
		if err := drainMisuse(hooks.Snapshot().DrainDelay, m.life.grace); err != nil {
			return fmt.Errorf("run manager: %w", err)
		}
	}
	return m.life.begin(fail)
}

// stop ends the stages from the last to the first, each when the one below has ended,
// within grace. It returns the names of what has not ended.
func stop(started []running, cause error, grace time.Duration) (left []string) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for i, s := range slices.Backward(started) {
		s.end(cause)
		select {
		case <-s.ended:
		case <-timer.C:
			return abandon(started[:i+1])
		}
	}
	return nil
}

// abandon ends all stages at once, and returns the names of what does not end within
// lastMoment.
func abandon(started []running) (left []string) {
	for _, s := range started {
		s.end(election.ErrAbandoned)
	}
	timer := time.NewTimer(lastMoment)
	defer timer.Stop()
	for _, s := range slices.Backward(started) {
		select {
		case <-s.ended:
		case <-timer.C:
			timer.Reset(0) // the moment is shared
			left = append(left, s.group.running()...)
		}
	}
	return left
}
