// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
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
