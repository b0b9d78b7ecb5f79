// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

// trickle returns a few bytes at a time, and runs a check after each read.
type trickle struct {
	body  *bytes.Reader
	step  int
	pause time.Duration
	look  func(given int)
}

func (r trickle) Read(p []byte) (int, error) {
	time.Sleep(r.pause)
	n, err := r.body.Read(p[:min(len(p), r.step)])
	r.look(int(r.body.Size()) - r.body.Len())
	return n, err
}

func TestShare_NeverHasLessThanIsRead_H1(t *testing.T) {
	const limit = 1 << 20
	for name, c := range map[string]struct {
		size, announced int
		pause           time.Duration
	}{
		"all that is announced, at once": {300_000, 300_000, 0},
		"slowly":                         {300_000, 300_000, 50 * time.Millisecond},
		"nobody knows how much":          {300_000, -1, 0},
		"slowly, nobody knows how much":  {300_000, -1, 50 * time.Millisecond},
		"all that is allowed":            {limit, limit, 0},
		"little":                         {1000, 1000, 0},
		"as much as the first bytes":     {firstBytes, firstBytes, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				room := &share{budget: semaphore.NewWeighted(limit), limit: limit}
				lent := func() int64 {
					var free int64
					for free < limit && room.budget.TryAcquire(1<<10) {
						free += 1 << 10
					}
					room.budget.Release(free)
					return limit - free
				}
				body := bytes.Repeat([]byte("x"), c.size)
				from := trickle{body: bytes.NewReader(body), step: 10_000, pause: c.pause, look: func(given int) {
					has := lent()
					if int64(given) > max(has, firstBytes) {
						t.Errorf("%d bytes were read, with room for %d", given, has)
					}
					if c.pause > 0 && given > 100_000 && has > 2*int64(given) {
						t.Errorf("%d bytes were read slowly, and room is kept for %d", given, has)
					}
				}}
				first := make([]byte, firstBytes)
				n, err := io.ReadAtLeast(from, first, 1)
				if err == nil {
					err = room.claim(t.Context(), int64(c.announced))
				}
				got := first[:n]
				if err == nil {
					got, err = room.readAll(t.Context(), got, from, int64(c.announced))
				}
				if err != nil || !bytes.Equal(got, body) {
					t.Fatalf("read %d bytes of %d, %v", len(got), len(body), err)
				}
				if has, want := lent(), room.within(int64(c.size)); has > want+1<<10 {
					t.Errorf("for %d bytes there is room for %d, want %d", c.size, has, want)
				}
				room.end()
				if has := lent(); has != 0 {
					t.Errorf("after the end %d bytes are kept", has)
				}
			})
		})
	}
}

func TestShare_EndsWithItsContext_H1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := semaphore.NewWeighted(1 << 20)
		first, second := &share{budget: budget, limit: 1 << 20}, &share{budget: budget, limit: 1 << 20}
		if err := first.claim(t.Context(), 1<<20); err != nil {
			t.Fatal(err)
		}
		if err := first.cover(t.Context(), 1<<20); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := second.claim(ctx, 1); err == nil {
			t.Error("there is room for two where one has it all")
		}
		second.end()
		first.end()
		if !budget.TryAcquire(1 << 20) {
			t.Error("not all was given back")
		}
	})
}
