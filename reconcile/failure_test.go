// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

type unspeakable struct{}

func (unspeakable) Error() string { panic("no words") }

func TestController_FailuresAreTheLastErrorsOfKeysThatAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer error
		s := newStanding(func(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, answer })
		stop := s.begin(t, s.Run)
		run := func(err error) []reconcile.Failure[string] {
			answer = err
			s.keys <- "a"
			synctest.Wait()
			return s.Failures()
		}
		if got := run(nil); len(got) != 0 {
			t.Errorf("after a success: %+v, want none", got)
		}
		began := time.Now()
		got := run(errors.New("no route"))
		if len(got) != 1 || got[0].Key != "a" || got[0].Err != "no route" || got[0].Outcome != reconcile.OutcomeError || !got[0].At.Equal(began) {
			t.Errorf("after an error: %+v, want it", got)
		}
		if got := run(errors.New(strings.Repeat("é", 400))); len(got) != 1 || got[0].Err != strings.Repeat("é", 256) {
			t.Errorf("after a long one: %+v, want 512 bytes of it", got)
		}
		if got := run(errors.New(strings.Repeat("é", 255) + "xé" + strings.Repeat(".", 99))); len(got) != 1 || got[0].Err != strings.Repeat("é", 255)+"x" {
			t.Errorf("after one that is cut inside a letter: %+v, want it cut before", got)
		}
		if got := run(unspeakable{}); len(got) != 1 || !strings.Contains(got[0].Err, "no words") {
			t.Errorf("after an error that panics: %+v, want the panic", got)
		}
		if got := run(reconcile.Terminal(errors.New("forever"))); len(got) != 0 {
			t.Errorf("after a terminal error: %+v, want none, since nothing is tried again", got)
		}
		_ = run(errors.New("no route"))
		if got := run(nil); len(got) != 0 {
			t.Errorf("after a success: %+v, want none", got)
		}
		stop(nil)
		s.wg.Wait()
	})
}

// Nothing finds what is remembered of a NaN, so a table of them would only grow.
func TestController_RemembersNothingOfAKeyThatIsNotItself_B27(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var succeeds atomic.Bool
		var runs atomic.Int32
		c := reconcile.New("strange", func(context.Context, float64) (reconcile.Result, error) {
			runs.Add(1)
			if !succeeds.Load() {
				return reconcile.Result{}, alwaysPassed{errors.New("ahead")}
			}
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[float64]{Workers: 1, OmitOwnEvents: true})
		keys := make(chan float64)
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = c.Run(ctx) })
		keys <- math.NaN()
		time.Sleep(time.Second)
		if got := c.Failures(); runs.Load() < 2 || len(got) != 0 {
			t.Errorf("%d runs left %d failures, want some and none: each has a key that nothing removes", runs.Load(), len(got))
		}
		if s := c.QueueSnapshot(); len(s.Keys) > 1 {
			t.Errorf("one key became %d: a retry does not withdraw the one before", len(s.Keys))
		}
		succeeds.Store(true)
		time.Sleep(time.Hour)
		if s := c.QueueSnapshot(); len(s.Keys) != 0 {
			t.Errorf("after its success the key still waits: %+v", s.Keys)
		}
		cancel()
		wg.Wait()
	})
}
