// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// some are shards that are held; the test changes them.
type some struct {
	held   map[int]bool
	asked  int // calls of Works
	change func()
}

func (s *some) Enter(ctx context.Context, shard int) (context.Context, func(), bool) {
	if !s.held[shard] {
		return nil, nil, shard == 7
	}
	return ctx, func() {}, false
}

func (s *some) Works(shard int) bool {
	s.asked++
	return s.held[shard]
}

func (s *some) Changed(f func()) (stop func()) {
	s.change = f
	return func() { s.change = func() {} }
}

func (s *some) set(shard int, held bool) {
	s.held[shard] = held
	s.change()
}

// Keys of shards that are not held come when these are, and only they. What is kept is not looked
// at again for each shard.
func TestKeys_KeptUntilTheirShardsAreHeld_R32(t *testing.T) {
	where, placed := map[string]int{"a": 1, "b": 1, "c": 2, "d": 2, "e": 7}, 0
	s := &some{held: map[int]bool{1: true}}
	k := NewKeys(s, func(key string) (int, bool) {
		placed++
		shard, ok := where[key]
		return shard, ok
	})
	var added []string
	stop := k.Follow(func(keys []string) { added = append(added, slices.Sorted(slices.Values(keys))...) })
	said := func() string {
		defer func() { added = nil }()
		return strings.Join(added, "")
	}
	enter := func(keys string) string {
		var out strings.Builder
		for key := range strings.SplitSeq(keys, "") {
			switch _, leave, later := k.Enter(t.Context(), key); {
			case leave != nil:
				out.WriteString(key)
			case later:
				out.WriteString("+")
			default:
				out.WriteString("-")
			}
		}
		return out.String()
	}
	if got := enter("abcdex"); got != "ab--+-" {
		t.Errorf("%s was entered, want a and b alone, and e later", got)
	}
	placed, s.asked = 0, 0
	s.set(3, true)
	if got := said(); got != "" || placed != 0 || s.asked != 2 {
		t.Errorf("%q was added for a shard of none; %d keys and %d shards were looked at, want 0 and 2", got, placed, s.asked)
	}
	s.set(2, true)
	if got := said(); got != "cd" {
		t.Errorf("%q was added, want c and d", got)
	}
	s.set(2, false)
	s.set(2, true)
	if got := said(); got != "" {
		t.Errorf("%q was added again", got)
	}
	delete(where, "e") // its object is gone
	if got := enter("e"); got != "-" {
		t.Errorf("%s was entered, want nothing", got)
	}
	s.set(7, true)
	if got := said(); got != "" || len(k.mu.kept) != 0 {
		t.Errorf("%q was added, and %v is kept; its object is gone", got, slices.Collect(maps.Keys(k.mu.kept)))
	}
	s.set(1, false)
	enter("a")
	told := s.change // it may be called after the end
	stop()
	s.set(1, true)
	told()
	if k.Add("b"); said() != "" || len(k.mu.kept) != 1 {
		t.Errorf("keys are added though nobody follows, or %v is not kept", k.mu.kept)
	}
}

// A shard that comes to be held between the question and the note is not missed.
func TestKeys_HeldMeanwhile_R32(t *testing.T) {
	s := &some{held: map[int]bool{}}
	late := late{s}
	k := NewKeys(late, func(string) (int, bool) { return 1, true })
	if _, leave, _ := k.Enter(t.Context(), "a"); leave == nil || len(k.mu.kept) != 0 {
		t.Errorf("the key was not entered, though its shard was held meanwhile; %v is kept", k.mu.kept)
	}
}

// late holds each shard after it was asked for it once.
type late struct{ *some }

func (l late) Enter(ctx context.Context, shard int) (context.Context, func(), bool) {
	defer func() { l.held[shard] = true }()
	return l.some.Enter(ctx, shard)
}

func TestKeys_APanicOfPlaceIsEntersAndHoldsNoLock_R32(t *testing.T) {
	k := NewKeys(&some{held: map[int]bool{}}, func(string) (int, bool) { panic("a test says so") })
	for range 2 {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != "a test says so" {
					t.Errorf("Enter has panicked with %v", got)
				}
			}()
			k.Enter(t.Context(), "a")
		}()
	}
}
