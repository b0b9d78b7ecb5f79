// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package sleep_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/internal/sleep"
)

func TestFor(t *testing.T) {
	for _, row := range []struct {
		name         string
		d, life      time.Duration
		want         bool
		wantedToTake time.Duration
	}{
		{"passes", time.Second, time.Minute, true, time.Second},
		{"ends before", time.Minute, time.Second, false, time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), row.life)
				defer cancel()
				begun := time.Now()
				if got := sleep.For(ctx, row.d); got != row.want {
					t.Errorf("got %v, want %v", got, row.want)
				}
				if took := time.Since(begun); took != row.wantedToTake {
					t.Errorf("it took %v, want %v", took, row.wantedToTake)
				}
			})
		})
	}
}
