// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// An oversized frame is probably sent again, so it is requested slowly, also by
// lists, and the state gives the reason.
func TestReflector_OversizedFrameIsAskedForSlowly_A15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tooLarge := fmt.Errorf("read watch: %w", &kube.TooLargeError{Limit: encoding.MaxFrame})
		ab := pageOf("10", "", item("a", "1"))
		lw := &script{steps: []act{ab, frames(tooLarge), frames(tooLarge)}}
		for range 1000 {
			lw.steps = append(lw.steps, ab, frames(tooLarge))
		}
		_, state := reflectFor(t, time.Hour, lw, Options{PagedLists: true})
		if n := strings.Count(lw.requests(), "list"); n < 50 || n > 130 {
			t.Errorf("%d lists in an hour, want about one in 30 s to 60 s", n)
		}
		if n := len(lw.asked); n > 260 {
			t.Errorf("%d requests in an hour, want a watch for each list", n)
		}
		for _, want := range []string{"134217728 bytes", "find what sends it"} {
			if !strings.Contains(state.Reason, want) {
				t.Errorf("got %s; want to read %q", state, want)
			}
		}
		if state.Relists[steps.RelistOversized] == 0 || state.NextTry.IsZero() {
			t.Errorf("got %+v; want the relists counted, and the next try", state)
		}
	})
}

func TestReflector_OversizedPageIsAskedForInSmallerOnes_A15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &script{steps: []act{{err: &kube.TooLargeError{Limit: encoding.MaxFrame}}, {err: &kube.TooLargeError{Limit: encoding.MaxFrame}}, pageOf("10", "", item("a", "1")), frames(nil)}}
		limits := &limited{script: lw}
		m, _ := reflectFor(t, time.Minute, limits, Options{PagedLists: true, PageSize: 400})
		if got := fmt.Sprint(limits.limits); got != "[400 200 100]" || m.held() != "a@1" {
			t.Errorf("got pages of %s objects and %q, want 400, 200, 100 and a", got, m.held())
		}
	})
}

// limited records the requested page sizes.
type limited struct {
	*script
	limits []int64
}

func (l *limited) List(ctx context.Context, o listwatch.ListOptions) (listwatch.Page[kube.Object], error) {
	l.limits = append(l.limits, o.Limit)
	return l.script.List(ctx, o)
}
