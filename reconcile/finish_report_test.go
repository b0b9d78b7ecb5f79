// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// Two hundred keys fail for ten minutes, as after a bad rollout: some panic, some
// return an error that differs each time.
func TestController_RepeatedFailuresAreCountedAtAFallingRate_R11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const own = "a line of the reconciler's own"
		var j journal
		attempts := 0
		fed := make(keys, 200)
		c := reconcile.New("test", func(ctx context.Context, key string) (reconcile.Result, error) {
			if attempts++; key == "key-0" {
				logr.FromContextOrDiscard(ctx).Error(errors.New("no"), own)
			}
			if strings.HasSuffix(key, "1") {
				panic(fmt.Sprintf("boom %d", attempts))
			}
			return reconcile.Result{}, fmt.Errorf("no %d", attempts)
		}, reconcile.KeyedOptions[string]{Workers: 1, Logger: j.logger(), RateLimiter: workqueue.Exponential{Base: time.Second, Max: 10 * time.Second}})
		c.Watch(fed.source())
		stop := start(t, c)
		for i := range 200 {
			fed <- fmt.Sprintf("key-%d", i)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := len(j.lines(`"key"="key-0"`, own)); n < 50 {
			t.Errorf("%d lines of the reconciler's own, want one of each attempt", n)
		}
		if n := len(j.lines("report_test.go", "stack")); n != 1 {
			t.Errorf("%d stacks, want one", n)
		}
		for _, failure := range []string{"Reconcile panicked", "Reconcile failed; retrying"} {
			lines := j.lines(failure)
			if n := len(lines); n < 10 || n > 25 {
				t.Errorf("%q is logged %d times in ten minutes, want 10 to 25", failure, n)
			}
			told := len(lines)
			for _, line := range lines {
				if m := regexp.MustCompile(`"omitted"=(\d+)`).FindStringSubmatch(line); m != nil {
					n, _ := strconv.Atoi(m[1])
					told += n
				}
			}
			if total := attempts / 10; told < total/3 {
				t.Errorf("%q: the lines tell of %d failures, want most of the %d or more", failure, told, total)
			}
		}
		stop()
	})
}
