// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/manager"
)

func TestManager_RunnableThatNeverStartsIsAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		must(t, m.AddTo(manager.StageServers, neverStarted{}))
		if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "before its Started channel was closed") {
			t.Errorf("Run = %v, want an error: the next stage would never start", err)
		}
	})
}

// neverStarted ends without having started.
type neverStarted struct{}

func (neverStarted) Run(context.Context) error { return nil }
func (neverStarted) Started() <-chan struct{}  { return make(chan struct{}) }

func TestManager_FaultOfOneEndsAllWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		cause := errors.New("the disk is full")
		j := &journal{}
		must(t, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			j.write("other told to end")
			return errors.New("could not flush")
		})))
		must(t, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			time.Sleep(time.Minute)
			return cause
		})))
		err := m.Run(t.Context())
		if !errors.Is(err, cause) || !strings.HasPrefix(err.Error(), "run manager.RunnableFunc: the disk is full") {
			t.Errorf("Run = %v, want first the fault that ended it", err)
		}
		if !strings.Contains(err.Error(), "could not flush") {
			t.Errorf("Run = %v, want the fault of the stop too", err)
		}
		if got := j.read(); len(got) != 1 {
			t.Errorf("got %q: the others are told to end", got)
		}
	})
}

func TestManager_RunnableThatEndsByItselfEndsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		must(t, m.Add(manager.RunnableFunc(func(context.Context) error { return nil })))
		stop, wait := run(t, m)
		synctest.Wait()
		if got := m.Snapshot().Phase; got != manager.PhaseRunning {
			t.Errorf("phase = %s, want running: a task that is done is no fault", got)
		}
		stop()
		must(t, wait())
	})
}

func TestManager_PanicOfARunnableIsAnErrorWithItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		must(t, m.Add(manager.RunnableFunc(explode)))
		err := m.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "panic: boom") || !strings.Contains(err.Error(), "explode") {
			t.Errorf("Run = %v, want the panic and the stack that names explode", err)
		}
	})
}

func explode(context.Context) error { panic("boom") }
