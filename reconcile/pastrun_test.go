// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func TestController_RunsNameWhatHappened_R29(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		s := newNaming(func(func(string, source.Cause)) {})
		results := []error{errors.New("the database is away"), nil, nil}
		c := reconcile.New("website", func(_ context.Context, key string) (reconcile.Result, error) {
			time.Sleep(2 * time.Second)
			if key == "other" {
				return reconcile.Result{}, nil
			}
			err := results[0]
			if results = results[1:]; err != nil || len(results) > 0 {
				return reconcile.Result{}, err
			}
			return reconcile.Result{RequeueAfter: time.Hour, Reason: "the certificate expires"}, nil
		}, reconcile.KeyedOptions[string]{Workers: 1, Logger: log.logger()})
		c.Watch(s)
		stop := start(t, c)
		synctest.Wait()
		if c.Runs("a") != nil || c.RunsOf("a") != nil {
			t.Error("there are runs before the first one")
		}
		began := time.Now()
		s.name("other", config)
		s.name("a", website) // waits for the one worker
		s.name("a", config)
		time.Sleep(10 * time.Second) // a fails, and is tried again
		s.name("a", website)
		time.Sleep(10 * time.Second)

		runs := c.Runs("a")
		if len(runs) != 3 {
			t.Fatalf("%d runs, want 3", len(runs))
		}
		failed, done, after := runs[0], runs[1], runs[2]
		if !failed.Began.Equal(began.Add(2*time.Second)) || failed.Waited != 2*time.Second || failed.Took != 2*time.Second {
			t.Errorf("began %s, waited %s, took %s", failed.Began, failed.Waited, failed.Took)
		}
		if failed.Outcome != reconcile.OutcomeError || failed.Err != "the database is away" || len(failed.ID) != 16 {
			t.Errorf("the failed run is %+v", failed)
		}
		if why := failed.Causes; why.Count != 2 || why.First != website || why.Last != config || !why.Since.Equal(began) || len(why.Sources) != 2 {
			t.Errorf("its causes are %+v", why)
		}
		if done.Outcome != reconcile.OutcomeDone || done.Err != "" || done.Causes.First.Source != source.Retry || done.Causes.First.Reason != "the database is away" {
			t.Errorf("the retry is %+v", done)
		}
		if after.Outcome != reconcile.OutcomeAfter || after.After != time.Hour || after.Reason != "the certificate expires" || after.Causes.Count != 1 || after.Causes.Last != website {
			t.Errorf("the last run is %+v", after)
		}
		if of := c.RunsOf("a"); len(of) != 3 || of[0].ID != failed.ID {
			t.Errorf("the runs of the text are %+v, want those of the key", of)
		}
		if page := c.RecordedKeys(reconcile.KeysQuery{}); page.Recorded != 2 || page.Keys[0].Key != "a" || page.Keys[0].Runs != 3 {
			t.Errorf("the page is %+v", page)
		}
		if err := stop(); err != nil || c.Runs("a") != nil {
			t.Errorf("after the end, %v, the runs are %v, want none", err, c.Runs("a"))
		}
	})
}

func TestController_RunsOfAPanicAndANaN_R29(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNaming(func(func(float64, source.Cause)) {})
		c := reconcile.New("website", func(context.Context, float64) (reconcile.Result, error) {
			panic("no")
		}, reconcile.KeyedOptions[float64]{Workers: 1, RateLimiter: hourly{}})
		c.Watch(s)
		start(t, c)
		synctest.Wait()
		s.name(1, config)
		s.name(math.NaN(), config)
		synctest.Wait()
		runs := c.Runs(1)
		if len(runs) != 1 || runs[0].Outcome != reconcile.OutcomePanic || !strings.Contains(runs[0].Err, "no") {
			t.Errorf("the runs of a panic are %+v", runs)
		}
		if page := c.RecordedKeys(reconcile.KeysQuery{}); page.Recorded != 1 || page.Failing != 1 || c.Runs(math.NaN()) != nil {
			t.Errorf("the page is %+v, want the one key that is equal to itself", page)
		}
	})
}

type hourly struct{}

func (hourly) Delay(time.Time, int) time.Duration { return time.Hour }
