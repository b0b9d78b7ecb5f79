// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/source/sourcetest"
)

// told is a source controlled by the test.
type told struct {
	said   chan func(add func(string, source.Cause))
	synced chan struct{}
	err    error // that Run ends with when said is closed
}

func newTold() *told {
	return &told{said: make(chan func(func(string, source.Cause))), synced: make(chan struct{})}
}

func (s *told) Run(ctx context.Context, add func(string, source.Cause)) error {
	close(s.synced)
	for {
		select {
		case <-ctx.Done():
			return nil
		case say, ok := <-s.said:
			if !ok {
				return s.err
			}
			say(add)
		}
	}
}
func (s *told) Synced() <-chan struct{} { return s.synced }
func (s *told) String() string          { return "told" }

// name makes the source add key.
func (s *told) name(key string, cause source.Cause) {
	s.said <- func(add func(string, source.Cause)) { add(key, cause) }
}

// clock records when each key is added.
type clock struct {
	mu struct {
		sync.Mutex
		at map[string][]time.Duration
	}
	begun time.Time
}

func newClock() *clock {
	c := &clock{begun: time.Now()}
	c.mu.at = map[string][]time.Duration{}
	return c
}

func (c *clock) add(key string, _ source.Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.at[key] = append(c.mu.at[key], time.Since(c.begun))
}

func (c *clock) of(key string) []time.Duration {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mu.at[key])
}

func TestDebounce_KeepsTheContract(t *testing.T) {
	sourcetest.Run(t, func() source.Source[string] {
		events := make(chan string, 2)
		events <- "a"
		events <- "b"
		return source.Debounce(source.Channel(events, source.ChannelOptions{}), time.Minute, 0)
	})
	sourcetest.Run(t, func() source.Source[string] {
		return source.Debounce(source.Ticker(time.Second, once("a"), source.TickerOptions{}), 2*time.Second, time.Minute)
	})
}

func TestDebounce_KeyIsAddedWhenItsSourceFallsSilent_W10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := newTold(), newClock()
		follow(t, source.Debounce[string](s, time.Second, 10*time.Second), at.add)
		s.name("a", source.Cause{})
		time.Sleep(900 * time.Millisecond)
		s.name("a", source.Cause{})
		s.name("b", source.Cause{})
		time.Sleep(900 * time.Millisecond)
		s.name("a", source.Cause{})
		time.Sleep(time.Minute)
		if got, want := at.of("a"), []time.Duration{2800 * time.Millisecond}; !slices.Equal(got, want) {
			t.Errorf("a was added at %v, want %v: a second after it was named last, once", got, want)
		}
		if got, want := at.of("b"), []time.Duration{1900 * time.Millisecond}; !slices.Equal(got, want) {
			t.Errorf("b was added at %v, want %v: another key's noise is not its own", got, want)
		}
	})
}

func TestDebounce_NoKeyWaitsLongerThanTheLongestWait_W10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := newTold(), newClock()
		follow(t, source.Debounce[string](s, time.Second, 3*time.Second), at.add)
		for range 16 { // until 7.5 s
			s.name("noisy", source.Cause{})
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		// Named at 0, added at 3 s; named at 3 s or 3.5 s, added three seconds
		// later; then silence.
		got := at.of("noisy")
		if len(got) != 3 || got[0] != 3*time.Second || got[1] > 6500*time.Millisecond || got[2] != 8500*time.Millisecond {
			t.Errorf("a key that is named twice a second was added at %v, want every three seconds and a second after the end", got)
		}
	})
}

func TestDebounce_WhatIsThereAtTheStartDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := newTold(), newClock()
		d := source.Debounce[string](s, time.Hour, 0)
		follow(t, d, at.add)
		s.name("a", source.Cause{Initial: true})
		if got := at.of("a"); !slices.Equal(got, []time.Duration{0}) {
			t.Errorf("a key of the first list was added at %v, want at once: the controller waits for it", got)
		}
		select {
		case <-d.Synced():
		default:
			t.Error("Synced is open though the source is synced")
		}
	})
}

func TestDebounce_SourceThatEndsLeavesNothingBehind_W10(t *testing.T) {
	for name, cause := range map[string]error{"well": nil, "with an error": errors.New("gone")} {
		synctest.Test(t, func(t *testing.T) {
			s, at := newTold(), newClock()
			s.err = cause
			stop := follow(t, source.Debounce[string](s, time.Second, 0), at.add)
			s.name("a", source.Cause{})
			close(s.said)
			time.Sleep(time.Minute)
			if got := len(at.of("a")); got != 1 && cause == nil {
				t.Errorf("a source ended %s while a key waited: added %d times, want once", name, got)
			}
			if err := stop(); !errors.Is(err, cause) {
				t.Errorf("Run returned %v, want %v", err, cause)
			}
		})
	}
}

func TestDebounce_ShowsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTold()
		d := source.Debounce[string](s, time.Second, 1500*time.Millisecond)
		var got collector
		follow(t, d, got.add)
		begun := time.Now()
		s.name("a", source.Cause{Source: "told"})
		time.Sleep(800 * time.Millisecond)
		s.name("b", source.Cause{})
		s.name("a", source.Cause{})
		synctest.Wait()
		if s := source.SnapshotOf(d); s.Waiting != 2 || !s.NextDue.Equal(begun.Add(1500*time.Millisecond)) || s.Keys != 0 || s.Source != "told" || !s.Synced {
			t.Errorf("snapshot %+v, want two keys that wait, the first until 1.5 s after the start", s)
		}
		w := d.Waiting()
		if len(w) != 2 || w[0].Key != "a" || !w[0].Due.Equal(begun.Add(1500*time.Millisecond)) || !w[1].Due.Equal(begun.Add(1800*time.Millisecond)) || !w[0].First.Equal(begun) {
			t.Errorf("waiting %+v, want a until 1.5 s and b until 1.8 s", w)
		}
		time.Sleep(time.Minute)
		if keys, _ := got.take(); keys != "a b" {
			t.Errorf("added %q, want a, then b", keys)
		}
		if s := source.SnapshotOf(d); s.Waiting != 0 || !s.NextDue.IsZero() || s.Keys != 2 {
			t.Errorf("snapshot %+v, want none that waits and two keys added", s)
		}
	})
}

func TestDebounce_CauseIsThatOfAllThatWasHeldBack(t *testing.T) {
	a, b := source.Key{Name: "a"}, source.Key{Name: "b"}
	updated := func(object source.Key, from, to int64) source.Cause {
		return source.Cause{Type: kube.Updated, Object: object, OldGeneration: from, Generation: to}
	}
	deleting, resync := updated(a, 2, 2), updated(a, 2, 2)
	deleting.Deleting, resync.Resync = true, true
	for name, tc := range map[string]struct {
		said []source.Cause
		want source.Cause
	}{
		"generations from the first to the last": {[]source.Cause{updated(a, 1, 2), updated(a, 2, 2), updated(a, 2, 3), updated(a, 3, 3)}, updated(a, 1, 3)},
		"a resync hides no change":               {[]source.Cause{updated(a, 1, 2), resync}, updated(a, 1, 2)},
		"a deletion is not forgotten":            {[]source.Cause{deleting, updated(a, 2, 2)}, deleting},
		"an addition is not forgotten": {
			[]source.Cause{{Type: kube.Added, Object: a, Generation: 1}, updated(a, 1, 1)},
			source.Cause{Type: kube.Added, Object: a, Generation: 1},
		},
		"the key's own object comes first": {[]source.Cause{updated(a, 1, 2), updated(b, 1, 5)}, updated(a, 1, 2)},
		"what is wanted comes first":       {[]source.Cause{updated(b, 1, 2), updated(source.Key{Name: "c"}, 2, 2)}, updated(b, 1, 2)},
		"of equals the later":              {[]source.Cause{updated(b, 1, 1), updated(source.Key{Name: "c"}, 2, 2)}, updated(source.Key{Name: "c"}, 2, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := make(chan source.Cause)
				s := source.Debounce[source.Key](causes(events), time.Second, 0)
				var got collector
				follow(t, s, got.addKey)
				for _, cause := range tc.said {
					events <- cause
				}
				time.Sleep(time.Minute)
				if keys, cause := got.take(); keys != "a" || cause != tc.want {
					t.Errorf("added %q for %+v, want a for %+v", keys, cause, tc.want)
				}
			})
		})
	}
}

// causes is a source that adds the key a for each cause sent.
type causes chan source.Cause

func (s causes) Run(ctx context.Context, add func(source.Key, source.Cause)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case cause := <-s:
			add(source.Key{Name: "a"}, cause)
		}
	}
}
func (s causes) Synced() <-chan struct{} { return nil }
func (s causes) String() string          { return "causes" }

func TestDebounce_MisuseIsRemembered(t *testing.T) {
	ok := source.Ticker(time.Hour, once("a"), source.TickerOptions{})
	for want, s := range map[string]source.Source[string]{
		"the source is nil":         source.Debounce[string](nil, time.Second, 0),
		"the quiet time is 0s":      source.Debounce[string](ok, 0, time.Second),
		"below the quiet time":      source.Debounce[string](ok, time.Second, time.Millisecond),
		"the channel is nil":        source.Debounce[string](source.Channel[string](nil, source.ChannelOptions{}), time.Second, 0),
		"longest wait of -1s is be": source.Debounce[string](ok, time.Second, -time.Second),
	} {
		if err := source.ErrOf(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ErrOf is %v, want %q in it", err, want)
		}
		if err := s.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run returned %v, want %q in it", err, want)
		}
		_ = source.SnapshotOf(s)
		_ = s.Synced()
		if s.String() == "" {
			t.Errorf("%q: the source has no name", want)
		}
	}
}
