// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"

	"github.com/flyball-dev/flyball/internal/testing/habits"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// Reconcilers that make one step and return come to their end. With OmitOwnEvents just those stop
// that the option cannot serve: see docs/migration.md.
func TestHabits_ComeToTheirEnd_R15(t *testing.T) {
	for _, omit := range []bool{false, true} {
		var want []string
		for _, h := range habits.All {
			if omit && h.Omits {
				want = append(want, h.Name)
			}
		}
		for _, byNew := range []bool{false, true} {
			t.Run(fmt.Sprintf("omit=%t,new=%t", omit, byNew), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := simtest.New(t, nil)
					if err := habits.Seed(t.Context(), s.Client, "default"); err != nil {
						t.Fatal(err)
					}
					mgr, err := manager.New(manager.Options{Config: s.Config, Scheme: s.Client.Scheme(), MetricsAddress: "0", HealthAddress: "0", Logger: testr.New(t)})
					if err != nil {
						t.Fatal(err)
					}
					if err := habits.Add(mgr, byNew, reconcile.Options{OmitOwnEvents: omit}); err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() { ended <- mgr.Run(ctx) }()
					time.Sleep(time.Hour)
					got, err := habits.Unfinished(t.Context(), s.Client, "default")
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("unfinished after an hour: %q, %v\nwant %q", got, err, want)
					}
					cancel()
					if err := <-ended; err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
