// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
)

// life is the phase of a manager, and the errors that keep it from running or end it.
type life struct {
	grace time.Duration
	mu    struct {
		sync.Mutex
		phase  Phase
		since  time.Time
		misuse []error
		fail   context.CancelCauseFunc
		faults []error // the first ended Run
	}
	unled struct {
		once sync.Once
		c    chan struct{} // closed when leadership is lost
	}
}

func newLife(grace time.Duration) *life {
	l := &life{grace: grace}
	l.mu.phase, l.mu.since = PhaseNew, time.Now()
	l.unled.c = make(chan struct{})
	return l
}

// remember makes Run return err, if it has not begun.
func (l *life) remember(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.phase == PhaseNew {
		l.mu.misuse = append(l.mu.misuse, err)
	}
}

// begin starts the only run, which fail ends, unless there was misuse.
func (l *life) begin(fail context.CancelCauseFunc) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.phase != PhaseNew {
		return fmt.Errorf("run manager: it has already run (%s); make a new one", l.mu.phase)
	}
	if len(l.mu.misuse) > 0 {
		return fmt.Errorf("run manager: %w", errors.Join(l.mu.misuse...))
	}
	l.mu.phase, l.mu.since, l.mu.fail = PhaseRunning, time.Now(), fail
	return nil
}

func (l *life) enter(phase Phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.phase, l.mu.since = phase, time.Now()
}

func (l *life) phase() (Phase, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.phase, l.mu.since
}

// stopping returns an error if the manager is stopping or has stopped.
func (l *life) stopping() error {
	phase, since := l.phase()
	if phase == PhaseStopping || phase == PhaseStopped {
		return fmt.Errorf("the manager is %s since %s", phase, since.Format(time.RFC3339))
	}
	return nil
}

// stopsUntil returns when the grace period of the current stop ends.
func (l *life) stopsUntil() time.Time {
	_, since := l.phase()
	return since.Add(l.grace)
}

// fault ends the run because of err. It is called during the run only.
func (l *life) fault(err error) {
	l.mu.Lock()
	l.mu.faults = append(l.mu.faults, err)
	fail := l.mu.fail
	l.mu.Unlock()
	if errors.Is(err, ErrLeadershipLost) {
		l.unled.once.Do(func() { close(l.unled.c) })
	}
	fail(err)
}

func (l *life) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.mu.faults...)
}

// cutOff returns why controllers must not finish their reconciles; nil: they may.
func (l *life) cutOff() error {
	if reason := l.reason(); errors.Is(reason, ErrLeadershipLost) {
		return errors.Join(reason, reconcile.ErrCutOff)
	}
	return nil
}
