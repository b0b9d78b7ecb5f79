// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"time"
)

// FuzzPending compares pending with a search through all additions. An
// operation is two bytes: the time since the previous one, and which key is
// added, or that due keys are taken.
func FuzzPending(f *testing.F) {
	f.Add([]byte{0, 1, 5, 1, 5, 2, 9, 1, 200, 255})
	f.Add([]byte{0, 1, 9, 1, 9, 1, 9, 1, 9, 1, 0, 255, 9, 1, 30, 255})
	f.Fuzz(func(t *testing.T, ops []byte) {
		const quiet, longest = 10 * time.Second, 35 * time.Second
		type word struct{ first, last time.Time }
		p, said := pending[int]{quiet: quiet, longest: longest}, map[int]word{}
		due := func(w word) time.Time {
			if at := w.last.Add(quiet); at.Before(w.first.Add(longest)) {
				return at
			}
			return w.first.Add(longest)
		}
		now := time.Unix(0, 0)
		for i := 0; i+1 < len(ops); i += 2 {
			now = now.Add(time.Duration(ops[i]) * time.Second)
			key := int(ops[i+1]) % 16
			if ops[i+1] < 128 {
				w, waits := said[key]
				if !waits {
					w.first = now
				}
				w.last = now
				said[key] = w
				if alone := p.add(key, Cause{}, now); alone != (!waits && len(said) == 1) {
					t.Fatalf("W10: key %d is alone: %t, want %t", key, alone, !alone)
				}
			} else {
				for s := p.take(now); s != nil; s = p.take(now) {
					w, waits := said[s.key]
					if !waits || now.Before(due(w)) {
						t.Fatalf("W10: key %d is taken at %v; waits %t, due at %v", s.key, now, waits, due(w))
					}
					delete(said, s.key)
				}
				for key, w := range said {
					if !now.Before(due(w)) {
						t.Fatalf("W10: key %d was due at %v and is not taken at %v", key, due(w), now)
					}
				}
			}
			check(t, &p, len(said))
			next, some := p.next()
			if some != (len(said) > 0) {
				t.Fatalf("W10: some key waits: %t, want %t", some, !some)
			}
			for key, w := range said {
				if due(w).Before(next) {
					t.Fatalf("W10: the next is due at %v, but key %d at %v", next, key, due(w))
				}
			}
		}
	})
}

func check(t *testing.T, p *pending[int], want int) {
	t.Helper()
	if len(p.keys) != want || p.byLast.Len() != want || p.byFirst.Len() != want {
		t.Fatalf("%d keys, %d by last and %d by first, want %d", len(p.keys), p.byLast.Len(), p.byFirst.Len(), want)
	}
}
