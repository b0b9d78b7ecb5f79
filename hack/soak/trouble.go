// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// strike injects one fault that the seed selects, while others write. After the fault it
// stops the writers, waits until all informers equal the server, and records how long that
// took.
func (s *soak) strike(ctx context.Context, n uint64) error {
	random := rand.New(rand.NewPCG(s.Seed, 1<<32+n))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least)))
	}
	away := between(time.Millisecond, 1500*time.Millisecond)
	var err error
	what := ""
	switch random.IntN(5) {
	case 0:
		what = "kill -9"
		err = s.restart(ctx, func() error { pause(ctx, away/4); return nil })
		s.report.Kills++
	case 1:
		what = "kill -9 and compaction"
		err = s.restart(ctx, func() error { return s.env.Compact(ctx) })
		s.report.Kills++
		s.report.Compactions++
	case 2:
		what = "compaction behind a network that is away"
		s.network.Shut()
		pause(ctx, away)
		err = s.restart(ctx, func() error { return s.env.Compact(ctx) })
		s.network.Open()
		s.report.Kills++
		s.report.Compactions++
		s.report.Outages++
	case 3:
		what = "network away"
		s.network.Shut()
		pause(ctx, away)
		if random.IntN(2) == 0 {
			err = s.env.Compact(ctx)
			s.report.Compactions++
		}
		s.network.Open()
		s.report.Outages++
	case 4:
		what = "connections cut"
		for range 1 + random.IntN(3) {
			s.network.Cut()
			pause(ctx, away/10)
			s.report.Cuts++
		}
	}
	if err != nil {
		return fmt.Errorf("trouble %d, %s: %w", n, what, err)
	}
	begun := time.Now()
	for range writers { // each finishes its write and waits
		s.turns <- struct{}{}
	}
	err = s.compare(ctx)
	for range writers {
		<-s.turns
	}
	if err != nil {
		return fmt.Errorf("recover from trouble %d, %s: %w", n, what, err)
	}
	took := time.Since(begun)
	s.report.Recoveries = append(s.report.Recoveries, took)
	s.Logger.Info("Recovered", "trouble", what, "number", n, "took", took)
	pause(ctx, between(0, time.Second))
	return ctx.Err()
}

// restart kills the API server, runs meanwhile, and starts the server again.
func (s *soak) restart(ctx context.Context, meanwhile func() error) error {
	if err := s.env.KillAPIServer(); err != nil {
		return err
	}
	return errors.Join(meanwhile(), s.env.StartAPIServer(ctx))
}

// longest returns the longest of the recoveries, and the median.
func longest(of []time.Duration) (most, median time.Duration) {
	if len(of) == 0 {
		return 0, 0
	}
	of = slices.Sorted(slices.Values(of))
	return of[len(of)-1], of[len(of)/2]
}
