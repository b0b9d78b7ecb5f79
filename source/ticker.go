// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// TickerOptions of a Ticker.
type TickerOptions struct {
	// Name in logs and states. Empty: "ticker".
	Name string
	// Jitter lengthens each period by a random fraction of it, up to this one,
	// so that many processes do not tick together. 0: none. 0.1 is up to a
	// tenth.
	Jitter float64
}

// TickerSource is a source of recurring keys. Make it with Ticker.
type TickerSource[K comparable] struct {
	*record
	every  time.Duration
	jitter float64
	keys   func() iter.Seq[K]
}

// Ticker returns a source that adds the keys returned by keys: first when it
// starts, then whenever the period every has passed since the last were added.
// keys is called each time and may read a Lister. If it panics, the remaining
// keys of that tick are lost; the panic is counted and logged. A period that is
// not above zero, a negative jitter and a nil function are misuse, returned by
// Run.
func Ticker[K comparable](every time.Duration, keys func() iter.Seq[K], opts TickerOptions) *TickerSource[K] {
	var misuse []error
	if every <= 0 {
		misuse = append(misuse, fmt.Errorf("the period is %s; give one above zero", every))
	}
	if opts.Jitter < 0 {
		misuse = append(misuse, fmt.Errorf("the jitter is %v; give a share of the period from 0 on", opts.Jitter))
	}
	if keys == nil {
		misuse = append(misuse, errors.New("the function that names the keys is nil; give Ticker a func() iter.Seq of keys"))
	}
	return &TickerSource[K]{
		record: newRecord(named("ticker", opts.Name), misuse...),
		every:  every,
		jitter: opts.Jitter,
		keys:   keys,
	}
}

// Run adds the keys until ctx ends. It is synced after the first tick.
func (s *TickerSource[K]) Run(ctx context.Context, add func(K, Cause)) error {
	if err := s.begin(); err != nil {
		return err
	}
	log := textlog.Throttled(logr.FromContextOrDiscard(ctx)).WithValues("source", s.name)
	s.tick(log, add)
	close(s.synced)
	sim := simhook.Of(ctx)
	timer := time.NewTimer(s.period(sim))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			s.tick(log, add)
			timer.Reset(s.period(sim))
		}
	}
}

func (s *TickerSource[K]) period(sim simhook.Hooks) time.Duration {
	return s.every + time.Duration(float64(s.every)*s.jitter*simhook.Float64(sim, "tick "+s.name))
}

func (s *TickerSource[K]) tick(log logr.Logger, add func(K, Cause)) {
	defer func() {
		if p := recover(); p != nil {
			s.panics.Add(1)
			log.Error(fmt.Errorf("panic: %v", p), "The ticker's function panicked; the remaining keys of this tick are lost", "stack", string(debug.Stack()))
		}
	}()
	s.events.Add(1)
	for key := range s.keys() {
		s.record.keys.Add(1)
		add(key, causeWithout(s.name, key))
	}
}
