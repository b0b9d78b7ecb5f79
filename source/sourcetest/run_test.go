// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/source"
)

// bad is a source that violates one rule.
type bad struct {
	synced chan struct{}
	name   func() string
	run    func(ctx context.Context, add func(string, source.Cause)) error
}

func (b bad) Run(ctx context.Context, add func(string, source.Cause)) error { return b.run(ctx, add) }
func (b bad) Synced() <-chan struct{}                                       { return b.synced }
func (b bad) String() string                                                { return b.name() }

// witness records the complaints of a check.
type witness struct {
	testing.TB
	complaints int
}

func (w *witness) Errorf(string, ...any) { w.complaints++ }
func (w *witness) Error(...any)          { w.complaints++ }

func TestRun_CatchesASourceThatBreaksTheContract_R1(t *testing.T) {
	for name, tc := range map[string]struct {
		check func(testing.TB, source.Source[string])
		spoil func(*bad)
	}{
		"no name":      {names[string], func(b *bad) { b.name = func() string { return "" } }},
		"synced early": {notSyncedBefore[string], func(b *bad) { close(b.synced) }},
		"never synced": {syncsAndEnds[string], func(b *bad) { b.run = untilEnd }},
		"ctx's error": {syncsAndEnds[string], func(b *bad) {
			b.run = func(ctx context.Context, _ func(string, source.Cause)) error {
				close(b.synced)
				<-ctx.Done()
				return ctx.Err()
			}
		}},
		"error at the end": {endsAtOnce[string], func(b *bad) {
			b.run = func(context.Context, func(string, source.Cause)) error { return errors.New("too late") }
		}},
		"adds afterwards": {addsNothingAfter[string], func(b *bad) {
			b.run = func(ctx context.Context, add func(string, source.Cause)) error {
				<-ctx.Done()
				time.AfterFunc(time.Second, func() { add("a", source.Cause{}) })
				return nil
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &bad{synced: make(chan struct{}), name: func() string { return "bad" }, run: untilEnd}
				tc.spoil(s)
				w := &witness{TB: t}
				tc.check(w, s)
				if w.complaints == 0 {
					t.Error("the check has no complaint about a source that breaks its rule")
				}
			})
		})
	}
}

func untilEnd(ctx context.Context, _ func(string, source.Cause)) error {
	<-ctx.Done()
	return nil
}
