// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// A key starves if keys that became ready later go before it again and again, and not if all wait in
// turn, nor if only a few go before it.
func TestController_Starved_R30(t *testing.T) {
	first := func(key string) string { return key[:1] }
	for name, c := range map[string]struct {
		waiting int          // keys at the start
		cause   source.Cause // theirs
		fairBy  func(string) string
		every   time.Duration // another key of 40 flows is added
		takes   time.Duration // a reconcile
		want    string        // what is said of the finding
	}{
		"live keys before the first list": {2000, source.Cause{Initial: true}, nil, 125 * time.Millisecond, 100 * time.Millisecond, "(priority -100)"},
		"flows before a flood":            {9000, source.Cause{}, first, 125 * time.Millisecond, 100 * time.Millisecond, `(priority 0, flow "a")`},
		"a flood in turn":                 {9000, source.Cause{}, nil, 125 * time.Millisecond, 100 * time.Millisecond, ""},
		"two floods in turn":              {9000, source.Cause{Initial: true}, first, time.Hour, 100 * time.Millisecond, ""},
		"few live keys":                   {2000, source.Cause{Initial: true}, nil, 1250 * time.Millisecond, time.Second, ""},
		"most of the first list's":        {20000, source.Cause{Initial: true}, nil, 500 * time.Millisecond, 100 * time.Millisecond, ""},
		"ten minutes are not over":        {1100, source.Cause{Initial: true}, nil, 125 * time.Millisecond, 100 * time.Millisecond, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines atomic.Int32
				log := funcr.New(func(_, args string) {
					if strings.Contains(args, "starved") {
						lines.Add(1)
					}
				}, funcr.Options{})
				s := newNaming(func(add func(string, source.Cause)) {
					for i := range c.waiting {
						add(fmt.Sprintf("a/%d", i), c.cause)
					}
				})
				r := reconcile.New("test", func(context.Context, string) (reconcile.Result, error) {
					time.Sleep(c.takes)
					return reconcile.Result{}, nil
				}, reconcile.KeyedOptions[string]{Workers: 1, FairBy: c.fairBy, Logger: log, SoftDeadline: -1})
				r.Watch(s)
				start(t, r)
				begun := time.Now()
				found := map[string]bool{}
				for n := 0; time.Since(begun) < 16*time.Minute; n++ {
					time.Sleep(c.every)
					s.name(fmt.Sprintf("%c/new-%d", 'b'+n%40, n), source.Cause{})
					synctest.Wait()
					// A finding ends when its key runs, which may be soon.
					for _, f := range r.Findings() {
						if f.Kind != reconcile.Starved {
							t.Errorf("found %s", f)
							continue
						}
						found[f.Key] = true
						if waited := time.Since(begun); waited < 10*time.Minute || f.Since.Sub(begun) > time.Second || f.Count < 1000 {
							t.Errorf("after %v %q is found, since %v, while %d others ran", waited, f, f.Since.Sub(begun), f.Count)
						}
						if !strings.HasSuffix(f.String(), c.want) || r.Snapshot().Findings[reconcile.Starved] != 1 {
							t.Errorf("found %q, counted %d; want %s", f, r.Snapshot().Findings[reconcile.Starved], c.want)
						}
					}
				}
				if (len(found) > 0) != (c.want != "") || (lines.Load() > 0) != (c.want != "") {
					t.Errorf("after 16 minutes %d keys are found and %d logged, want some: %v", len(found), lines.Load(), c.want != "")
				}
				if lines.Load() > 7 {
					t.Errorf("%d lines for keys that starve, want one for each", lines.Load())
				}
				time.Sleep(time.Hour)
				if f := r.Findings(); len(f) > 0 {
					t.Errorf("when no other key goes before it, %v is found", f)
				}
			})
		})
	}
}
