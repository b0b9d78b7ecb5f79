// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// at is a moment of the tests.
func at(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }

func TestGate_MostUrgentGoesFirst_A13(t *testing.T) {
	for _, c := range []struct {
		name string
		asks []ask // their tickets are 1, 2, …
		now  time.Duration
		want []ticket
	}{
		{"ranks", []ask{{rank: rankOther}, {rank: rankFirst}, {rank: rankRelist}, {rank: rankWatch}}, 0, []ticket{4, 3, 2, 1}},
		{"small relists", []ask{{rank: rankRelist, size: 9}, {rank: rankRelist, size: 2}, {rank: rankRelist, size: 5}}, 0, []ticket{2, 3, 1}},
		{"of unknown size, who came first", []ask{{rank: rankFirst, since: at(2)}, {rank: rankFirst, since: at(1)}}, 2, []ticket{2, 1}},
		{"a relist of any size before a first list", []ask{{rank: rankFirst}, {rank: rankRelist, size: 1 << 20}}, 0, []ticket{2, 1}},
		{"who has waited long", []ask{{rank: rankWatch, since: at(5 * time.Minute)}, {rank: rankFirst, since: at(2 * time.Minute)}}, 5 * time.Minute, []ticket{2, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGateState(4)
			now := at(c.now)
			g.refused(99, "", now.Add(-time.Hour), now.Add(-time.Minute), "busy")
			for n, a := range c.asks {
				if a.since.IsZero() {
					a.since = now
				}
				g.arrive(ticket(n+1), a)
			}
			var got []ticket
			for range c.asks {
				admitted := g.admit(now)
				if len(admitted) == 0 {
					break
				}
				got = append(got, admitted...)
				g.window = 1 // the ramp is another test's
				for _, t := range admitted {
					delete(g.sent, t)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestGate_ClosesAndOpens_A13(t *testing.T) {
	g := newGateState(4)
	g.refused(1, "apps", at(0), at(10*time.Minute), "too many requests")
	for n := range ticket(100) {
		g.arrive(10+n, ask{rank: rankWatch, group: "", since: at(0)})
	}
	g.arrive(200, ask{rank: rankWatch, group: "apps", since: at(0)})
	if got := g.admit(at(time.Minute - 1)); len(got) != 0 {
		t.Errorf("%d passed within the first minute, want none", len(got))
	}
	if h := g.hold(ask{group: "apps"}, at(0)); h.until != at(10*time.Minute) || !strings.Contains(h.why, "too many requests") {
		t.Errorf("got %+v, want the whole Retry-After for the API that was refused, and the server's words", h)
	}
	if h := g.hold(ask{}, at(0)); h.until != at(time.Minute) {
		t.Errorf("got %+v, want a minute for the others", h)
	}
	if next := g.next(at(0)); next != at(time.Minute) {
		t.Errorf("looks again at %s, want at %s, when somebody may pass", next, at(time.Minute))
	}
	// Each answer makes room for one more than before.
	now, passed := at(time.Minute), 0
	for _, want := range []int{1, 2, 4, 8, 16, 32, 37} {
		admitted := g.admit(now)
		if len(admitted) != want {
			t.Errorf("%d passed after %d answers, want %d", len(admitted), passed, want)
		}
		for _, a := range admitted {
			g.answered(a)
		}
		passed += len(admitted)
		now = now.Add(time.Millisecond)
	}
	if got := g.admit(at(10*time.Minute - 1)); len(got) != 0 {
		t.Error("the API that was refused is asked before its Retry-After is over")
	}
	if got := g.admit(at(10 * time.Minute)); !slices.Equal(got, []ticket{200}) {
		t.Errorf("got %v after its Retry-After, want 200", got)
	}
}

// Requests that were under way when the gate closed do not open it.
func TestGate_AnswersFromBeforeDoNotWidenTheWindow_A13(t *testing.T) {
	g := newGateState(4)
	for n := range ticket(50) {
		g.arrive(n, ask{since: at(0)})
	}
	for n, a := range g.admit(at(0)) {
		if n == 0 {
			g.refused(a, "", at(1), at(time.Second), "busy")
		} else {
			g.answered(a)
		}
	}
	if g.window != 1 {
		t.Errorf("the window is %d, want 1", g.window)
	}
}

// Whatever happens: nobody passes a closed gate, no more lists than there are
// places are under way, and in the end everybody has passed.
func TestGate_RandomPrograms_A13(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		places := 1 + random.IntN(4)
		g := newGateState(places)
		groups := []string{"", "apps", "example.com"}
		asks, now, last := map[ticket]ask{}, at(0), ticket(0)
		var under []ticket
		take := func() {
			for _, a := range g.admit(now) {
				if until := g.closedFor(asks[a].group); until.After(now) {
					t.Fatalf("seed %d: %d passes a gate that is closed until %s, at %s", seed, a, until, now)
				}
				under = append(under, a)
			}
			if len(g.lists) > places {
				t.Fatalf("seed %d: %d lists have a place, of %d", seed, len(g.lists), places)
			}
		}
		for range 300 {
			switch random.IntN(6) {
			case 0, 1:
				last++
				asks[last] = ask{rank: rank(random.IntN(4)), group: groups[random.IntN(3)], list: random.IntN(2) == 0, size: random.IntN(100), since: now}
				g.arrive(last, asks[last])
			case 2:
				now = now.Add(time.Duration(random.IntN(500)) * time.Millisecond)
			case 3, 4:
				if len(under) > 0 {
					g.answered(under[0])
					g.leave(under[0])
					under = under[1:]
				}
			case 5:
				if len(under) > 0 && random.IntN(4) == 0 {
					g.refused(under[0], asks[under[0]].group, now, now.Add(time.Duration(random.IntN(120))*time.Second), "busy")
					g.leave(under[0])
					under = under[1:]
				}
			}
			take()
		}
		// Nobody answers any more, and all the same nobody waits for ever.
		for steps := 0; len(g.waiting) > 0; steps++ {
			next := g.next(now)
			if next.IsZero() || steps > 10000 {
				t.Fatalf("seed %d: %d wait, and nothing will let them pass", seed, len(g.waiting))
			}
			now = next
			take()
		}
		if next := g.next(now); !next.IsZero() {
			t.Fatalf("seed %d: looks again at %s with nobody waiting", seed, next)
		}
	}
}
