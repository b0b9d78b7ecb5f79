// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/source/sourcetest"
)

func once(keys ...string) func() iter.Seq[string] {
	return func() iter.Seq[string] { return slices.Values(keys) }
}

func TestChannel_KeepsTheContract(t *testing.T) {
	sourcetest.Run(t, func() source.Source[string] {
		events := make(chan string, 2)
		events <- "a"
		events <- "b"
		return source.Channel(events, source.ChannelOptions{})
	})
}

func TestTicker_KeepsTheContract(t *testing.T) {
	sourcetest.Run(t, func() source.Source[string] {
		return source.Ticker(time.Minute, once("a"), source.TickerOptions{Jitter: 0.5})
	})
}

func TestChannel_AddsKeysUntilItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan source.Key, 3)
		s := source.Channel(events, source.ChannelOptions{Name: "hooks"})
		a := source.Key{Namespace: "prod", Name: "a"}
		events <- a
		events <- a
		close(events)
		var got []source.Key
		err := s.Run(t.Context(), func(key source.Key, cause source.Cause) {
			got = append(got, key)
			if want := (source.Cause{Source: "channel hooks", Object: a}); cause != want {
				t.Errorf("cause %+v, want %+v", cause, want)
			}
		})
		if err != nil || !slices.Equal(got, []source.Key{a, a}) {
			t.Errorf("added %v, Run returned %v, want both keys and nil: a closed channel is an end, not a fault", got, err)
		}
		if s.Snapshot() != (source.Snapshot{Source: "channel hooks", Synced: true, Events: 2, Keys: 2}) {
			t.Errorf("Snapshot is %+v", s.Snapshot())
		}
		if err := s.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "make one for each controller") {
			t.Errorf("the second Run returned %v, want an error with the fix", err)
		}
	})
}

func TestTicker_TicksAtOnceAndThenEachPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		s := source.Ticker(time.Minute, once("a"), source.TickerOptions{})
		if err := s.Run(ctx, func(string, source.Cause) { at = append(at, time.Since(began)) }); err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
		if want := []time.Duration{0, time.Minute, 2 * time.Minute}; !slices.Equal(at, want) {
			t.Errorf("ticks at %v, want %v", at, want)
		}
	})
}

func TestTicker_JitterOnlyLengthens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Hour)
		defer cancel()
		last, spread := time.Time{}, map[time.Duration]bool{}
		s := source.Ticker(time.Hour, once("a"), source.TickerOptions{Jitter: 0.1})
		_ = s.Run(ctx, func(string, source.Cause) {
			if d := time.Since(last); !last.IsZero() {
				spread[d] = true
				if d < time.Hour || d > time.Hour+6*time.Minute {
					t.Errorf("a period of %s, want from 1h to 1h6m", d)
				}
			}
			last = time.Now()
		})
		if len(spread) < 2 {
			t.Errorf("%d different periods in 100 hours, want them spread", len(spread))
		}
	})
}

func TestTicker_PanicCostsTheRestOfItsTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		ticks := 0
		s := source.Ticker(time.Minute, func() iter.Seq[string] {
			return func(yield func(string) bool) {
				ticks++
				if yield("a") && ticks == 1 {
					panic("lister")
				}
				yield("b")
			}
		}, source.TickerOptions{})
		var got []string
		if err := s.Run(ctx, func(key string, _ source.Cause) { got = append(got, key) }); err != nil {
			t.Errorf("Run returned %v, want nil: the panic is not the source's end", err)
		}
		if want := []string{"a", "a", "b"}; !slices.Equal(got, want) || s.Snapshot().Panics != 1 {
			t.Errorf("added %v with %d panics, want %v and 1", got, s.Snapshot().Panics, want)
		}
	})
}

func TestSource_MisuseIsRememberedAndReturnedByRun(t *testing.T) {
	for name, tc := range map[string]struct {
		s    source.Source[string]
		want string
	}{
		"nil channel":     {source.Channel[string](nil, source.ChannelOptions{}), "the channel is nil"},
		"no period":       {source.Ticker(0, once("a"), source.TickerOptions{}), "the period is 0s"},
		"negative period": {source.Ticker(-1, once("a"), source.TickerOptions{}), "give one above zero"},
		"negative jitter": {source.Ticker(1, once("a"), source.TickerOptions{Jitter: -1}), "the jitter is -1"},
		"nil keys":        {source.Ticker[string](1, nil, source.TickerOptions{}), "names the keys is nil"},
		"optional":        {source.Optional[string](source.Channel[string](nil, source.ChannelOptions{})), "the channel is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := source.ErrOf(tc.s); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("ErrOf is %v, want %q in it", err, tc.want)
			}
			if err := tc.s.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Run returned %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestOptional_IsSyncedFromTheStart(t *testing.T) {
	s := source.Ticker(time.Hour, once("a"), source.TickerOptions{Name: "slow"})
	o := source.Optional[string](s)
	select {
	case <-o.Synced():
	default:
		t.Error("Synced of an optional source is open; a controller would wait for it")
	}
	if s := source.SnapshotOf(o); o.String() != "ticker slow" || s.Synced || !s.Optional {
		t.Errorf("optional source %q with snapshot %+v, want the name and the state of what it wraps", o, source.SnapshotOf(o))
	}
	if source.Optional[string](nil) != nil {
		t.Error("Optional(nil) is not nil; Watch could not tell that the source is missing")
	}
}
