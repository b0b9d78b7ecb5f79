// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// at is a time in the tests.
func at(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }

// kindOf returns kind n of an API group.
func kindOf(group string, n int) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Kind" + strconv.Itoa(n)}
}

// asking adds a request for each of kinds, with tickets from first on.
func asking(g *pacerState, first ticket, now time.Time, kinds ...schema.GroupVersionKind) {
	for n, kind := range kinds {
		g.arrive(first+ticket(n), Ask{Kind: kind, Rank: RankFirst, since: now})
	}
}

// sendAll sends requests for kinds and answers them with r.
func sendAll(g *pacerState, now time.Time, r reply, kinds ...schema.GroupVersionKind) {
	r.sent = now
	for _, kind := range kinds {
		g.send(1<<20, kind, now)
		g.replied(1<<20, kind, r, now)
	}
}

func TestPacer_MostUrgentGoesFirst_A13(t *testing.T) {
	for _, c := range []struct {
		name string
		asks []Ask // their tickets are 1, 2, …
		now  time.Duration
		want []ticket
	}{
		{"ranks", []Ask{{Rank: RankOther}, {Rank: RankFirst}, {Rank: RankRelist}, {Rank: RankWatch}}, 0, []ticket{4, 3, 2, 1}},
		{"small relists", []Ask{{Rank: RankRelist, Size: 9}, {Rank: RankRelist, Size: 2}, {Rank: RankRelist, Size: 5}}, 0, []ticket{2, 3, 1}},
		{"of unknown size, who came first", []Ask{{Rank: RankFirst, since: at(2)}, {Rank: RankFirst, since: at(1)}}, 2, []ticket{2, 1}},
		{"a relist of any size before a first list", []Ask{{Rank: RankFirst}, {Rank: RankRelist, Size: 1 << 20}}, 0, []ticket{2, 1}},
		{"who has waited long", []Ask{{Rank: RankWatch, since: at(5 * time.Minute)}, {Rank: RankFirst, since: at(2 * time.Minute)}}, 5 * time.Minute, []ticket{2, 1}},
		{"groups without trouble", []Ask{{Rank: RankWatch, Kind: kindOf("ill.example.com", 2)}, {Rank: RankOther}}, 0, []ticket{2, 1}},
		{"who has waited very long", []Ask{{Rank: RankWatch, Kind: kindOf("ill.example.com", 2), since: at(0)}, {Rank: RankFirst, since: at(5 * time.Minute)}}, 5 * time.Minute, []ticket{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newPacerState(4)
			now := at(c.now)
			g.of(kindOf("ill.example.com", 1)).sicken(now, time.Time{}, "")
			for n, a := range c.asks {
				if a.since.IsZero() {
					a.since = now
				}
				g.arrive(ticket(n+1), a)
			}
			var got []ticket
			for range c.asks {
				g.host.turns[fresh] = turns{burst: 1, left: 1, at: now} // one at a time
				admitted := g.admit(now)
				for _, t := range admitted {
					g.release(t)
				}
				got = append(got, admitted...)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// The requests that may be sent, depending on the answers so far.
func TestPacer_WhoMayAsk_A23(t *testing.T) {
	kinds := func(group string, n int) (all []schema.GroupVersionKind) {
		for k := range n {
			all = append(all, kindOf(group, k))
		}
		return all
	}
	sick, well := kinds("sick.example.com", 100), kinds("", 30)
	refusal := reply{verdict: verdictRefused, until: at(30 * time.Second), why: "storage is (re)initializing"}
	for _, c := range []struct {
		name    string
		outcome func(*pacerState)
		asks    []schema.GroupVersionKind
		passes  int // at once
		later   int // after a second without answers
	}{
		{"nothing was asked", func(*pacerState) {}, well, 30, 30},
		{"the kind was refused", func(g *pacerState) { sendAll(g, at(0), refusal, sick[0]) }, sick[:1], 0, 0},
		{"another kind was refused", func(g *pacerState) { sendAll(g, at(0), refusal, sick[0]) }, well[:10], 10, 10},
		{"ten others were refused", func(g *pacerState) { sendAll(g, at(0), refusal, sick[:10]...) }, well[:10], 10, 10},
		{"ten others were refused ten times", func(g *pacerState) {
			for range 10 {
				sendAll(g, at(0), refusal, sick[:10]...)
			}
		}, well[:10], 10, 10},
		{"a hundred others were refused", func(g *pacerState) { sendAll(g, at(0), refusal, sick...) }, well, 0, 8},
		{"a hundred others were refused, one was not", func(g *pacerState) {
			sendAll(g, at(0), refusal, sick...)
			sendAll(g, at(0), reply{}, well[0])
		}, well, 2, 10},
		{"a hundred others failed", func(g *pacerState) { sendAll(g, at(0), reply{verdict: verdictFaulty}, sick...) }, well, 30, 30},
		{"the connection broke off, of another kind", func(g *pacerState) { sendAll(g, at(0), reply{verdict: verdictLost}, sick[0]) }, well[:10], 10, 10},
		{"there is no connection", func(g *pacerState) { sendAll(g, at(0), reply{verdict: verdictDead}, sick[0]) }, well, 0, 8},
		{"four others were turned away before their storage", func(g *pacerState) {
			sendAll(g, at(0), reply{verdict: verdictBlocked, until: at(30 * time.Second)}, sick[:4]...)
		}, well, 0, 8},
		{"another kind of the priority level was turned away", func(g *pacerState) {
			sendAll(g, at(0), reply{level: "low"}, well...)
			sendAll(g, at(0), reply{verdict: verdictBlocked, level: "low", until: at(30 * time.Second)}, sick[0])
		}, well, 0, 8},
		{"one of another priority level was turned away", func(g *pacerState) {
			sendAll(g, at(0), reply{level: "high"}, well...)
			sendAll(g, at(0), reply{verdict: verdictBlocked, level: "low", until: at(30 * time.Second)}, sick[0])
		}, well[:19], 19, 19},
		{"another kind of the priority level was refused by its storage", func(g *pacerState) {
			sendAll(g, at(0), reply{level: "low"}, well...)
			r := refusal
			r.level = "low"
			sendAll(g, at(0), r, sick[0])
		}, well[:19], 19, 19},
		{"the caller gave it up", func(g *pacerState) { sendAll(g, at(0), reply{verdict: verdictGaveUp}, sick[0]) }, sick[:1], 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newPacerState(100)
			c.outcome(g)
			asking(g, 1, at(0), c.asks...)
			got := len(g.admit(at(0)))
			if got != c.passes {
				t.Errorf("%d pass at once, want %d", got, c.passes)
			}
			for now := 10 * time.Millisecond; now <= time.Second+silenceLimit; now += 10 * time.Millisecond {
				if now <= time.Second {
					got += len(g.admit(at(now)))
				}
			}
			if got < min(c.later, len(c.asks))/2 || got > c.later {
				t.Errorf("%d pass within a second, want %d or fewer, and half of them at least", got, c.later)
			}
		})
	}
}

// A server that refuses everything gets fewer than ten requests a second.
func TestPacer_ServerThatRefusesAllIsAskedSlowly_A13(t *testing.T) {
	for name, r := range map[string]reply{
		"by its storages":                 {verdict: verdictRefused},
		"before its storages":             {verdict: verdictBlocked},
		"a priority level":                {verdict: verdictBlocked, level: "low"},
		"with connections that break off": {verdict: verdictLost},
		"connections":                     {verdict: verdictDead},
	} {
		g, sent := newPacerState(4), 0
		under := map[ticket]schema.GroupVersionKind{}
		again := func(t ticket, now time.Time) {
			g.leave(t)
			g.arrive(t, Ask{Kind: under[t], List: true, since: now})
		}
		for n := range ticket(120) {
			under[n] = kindOf("group"+strconv.Itoa(int(n)%50), int(n))
			again(n, at(0))
		}
		for now := time.Duration(0); now < time.Minute; now += 50 * time.Millisecond {
			for _, a := range g.admit(at(now)) {
				sent++
				r.sent = at(now)
				if r.verdict == verdictRefused || r.verdict == verdictBlocked {
					r.until = at(now + time.Second)
				}
				g.replied(a, under[a], r, at(now))
				again(a, at(now))
			}
		}
		if sent > 600 || sent < 60 {
			t.Errorf("it refuses %s: %d requests in a minute, want 600 at most, and one each second at least", name, sent)
		}
	}
}

// After a time without answers each answer admits more requests.
func TestPacer_ClosesAndOpens_A13(t *testing.T) {
	g := newPacerState(4)
	sendAll(g, at(0), reply{verdict: verdictDead, why: "connection refused"}, kindOf("apps", 0))
	for n := range 200 {
		asking(g, ticket(n), at(0), kindOf("", n))
	}
	if got := g.admit(at(turnEvery - 1)); len(got) != 0 {
		t.Errorf("%d passed before the first turn, want none", len(got))
	}
	if h := g.hold(Ask{Kind: kindOf("", 9)}, at(0)); !strings.Contains(h.Why, "connection refused") {
		t.Errorf("got %+v, want the reason", h)
	}
	if next := g.next(at(0)); next != at(turnEvery) {
		t.Errorf("looks again at %s, want at %s, when somebody may pass", next, at(turnEvery))
	}
	now, passed := at(turnEvery), 0
	for _, want := range []int{1, 3, 9, 27, 160} {
		admitted := g.admit(now)
		if len(admitted) != want {
			t.Errorf("%d passed after %d answers, want %d", len(admitted), passed, want)
		}
		for _, a := range admitted {
			g.replied(a, kindOf("", int(a)), reply{sent: now}, now)
		}
		passed += len(admitted)
		now = now.Add(time.Millisecond)
	}
}

func TestPacer_RefusedKindWaitsForItsRetryAfter_A13(t *testing.T) {
	g := newPacerState(4)
	kind := kindOf("apps", 1)
	sendAll(g, at(0), reply{verdict: verdictRefused, until: at(10 * time.Minute), why: "too many requests"}, kind)
	asking(g, 1, at(0), kind)
	if h := g.hold(Ask{Kind: kind}, at(0)); h.Until != at(10*time.Minute) || !strings.Contains(h.Why, "too many requests") {
		t.Errorf("got %+v, want the whole Retry-After, and the server's words", h)
	}
	if got := g.admit(at(10*time.Minute - 1)); len(got) != 0 {
		t.Error("it is asked before its Retry-After is over")
	}
	if got := g.admit(at(10 * time.Minute)); len(got) != 1 {
		t.Error("it is not asked when its Retry-After is over")
	}
}

// Answers to requests sent before the first refusal do not count.
func TestPacer_AnswersFromBeforeDoNotWidenTheWindow_A13(t *testing.T) {
	g := newPacerState(4)
	for n := range 50 {
		asking(g, ticket(n), at(0), kindOf("", n))
	}
	for n, a := range g.admit(at(0)) {
		r := reply{sent: at(0)}
		if n == 0 {
			r.verdict = verdictDead
		}
		g.replied(a, kindOf("", int(a)), r, at(1))
	}
	if b := g.host.turns[fresh]; b.open || b.left != 0 {
		t.Errorf("got %+v, want no turns", b)
	}
}

// Silent lists of ill kinds take no places from other kinds.
func TestPacer_IllKindsListBesideOthers_A23(t *testing.T) {
	g := newPacerState(2)
	for n := range 5 {
		g.of(kindOf("ill", n)).sicken(at(0), time.Time{}, "")
		g.arrive(ticket(n), Ask{Kind: kindOf("ill", n), List: true, since: at(0)})
		g.arrive(ticket(10+n), Ask{Kind: kindOf("", n), List: true, since: at(0)})
	}
	if got := g.admit(at(0)); !slices.Equal(got, []ticket{10, 11, 0, 1}) {
		t.Errorf("got %v; want two of the well kinds and two of the ill ones", got)
	}
}

// What an answer costs does not grow with the number of requests that wait.
func TestPacer_AnswerLooksAtFewOfThoseThatWait_A14(t *testing.T) {
	for _, c := range []struct {
		name  string
		kinds int
		at    func(n int) time.Duration // of the arrival
	}{
		{"lists of one kind", 1, func(int) time.Duration { return 0 }},
		{"lists of twenty kinds, some of which have waited for a minute", 20, func(n int) time.Duration { return time.Duration(n) * time.Second }},
	} {
		const lists, answers = 8000, 1000
		g, kinds := newPacerState(DefaultConcurrentLists), map[ticket]schema.GroupVersionKind{}
		for n := range lists {
			kind := kindOf("", n%c.kinds)
			kinds[ticket(n)] = kind
			g.arrive(ticket(n), Ask{Rank: RankRelist, Kind: kind, List: true, Size: n * 7919 % lists, since: at(c.at(n))})
		}
		now := at(c.at(lists))
		admitted := g.admit(now)
		g.waiting.compared = 0
		for range answers {
			first := admitted[0]
			g.replied(first, kinds[first], reply{sent: now}, now)
			g.leave(first)
			admitted = append(admitted[1:], g.admit(now)...)
		}
		// A heap of 8,000 is 13 deep. A request is in two, and its kind in a third.
		if most := 150 * answers; g.waiting.compared > most || g.waiting.len() != lists-answers-DefaultConcurrentLists {
			t.Errorf("%s: %d answers took %d comparisons and left %d waiting, want %d at most and %d",
				c.name, answers, g.waiting.compared, g.waiting.len(), most, lists-answers-DefaultConcurrentLists)
		}
		for a := range ticket(lists) {
			g.leave(a) // also by those that have left
		}
		if n := g.waiting.len() + len(g.waiting.lines) + len(g.waiting.rising.all) + len(g.sending) + len(g.lists) + g.underWay(fresh); n != 0 {
			t.Errorf("%s: %d are left when all have left, want none", c.name, n)
		}
	}
}

// A kind without further requests does not stay ill forever, and the number of
// levels is limited.
func TestPacer_ForgetsIllnessesAndLevels_A23(t *testing.T) {
	g := newPacerState(4)
	for n := range 100 {
		sendAll(g, at(0), reply{verdict: verdictRefused, level: strconv.Itoa(n)}, kindOf("", n))
	}
	if n := *g.groups[""]; n != 100 {
		t.Errorf("%d ill kinds, want 100", n)
	}
	g.releaseSilent(at(illFor))
	if n := *g.groups[""]; n != 0 || len(g.levels) > mostLevels {
		t.Errorf("%d ill kinds and %d levels remembered, want none and %d at most", n, len(g.levels), mostLevels)
	}
}

// In any sequence, no request passes a closed gate, no more lists run than
// there are places, and in the end every request has passed.
func TestPacer_RandomPrograms_A13(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		places := 1 + random.IntN(4)
		g := newPacerState(places)
		levels := []string{"", "low", "high"}
		asks, now, last := map[ticket]Ask{}, at(0), ticket(0)
		var under []ticket
		take := func() {
			for _, a := range g.admit(now) {
				if until := g.of(asks[a].Kind).until; until.After(now) {
					t.Fatalf("seed %d: %d passes a gate that is closed until %s, at %s", seed, a, until, now)
				}
				under = append(under, a)
			}
			if g.underWay(fresh) > places || g.underWay(retried) > places {
				t.Fatalf("seed %d: %d lists have a place, of %d", seed, len(g.lists), places)
			}
			if n := g.host.turns[fresh].under + g.host.turns[retried].under; n != len(g.sent) {
				t.Fatalf("seed %d: %d requests are counted, %d under way", seed, n, len(g.sent))
			}
		}
		for range 300 {
			switch random.IntN(6) {
			case 0, 1:
				last++
				asks[last] = Ask{Rank: rank(random.IntN(4)), Kind: kindOf("", random.IntN(6)), List: random.IntN(2) == 0, Size: random.IntN(100), since: now}
				g.arrive(last, asks[last])
			case 2:
				now = now.Add(time.Duration(random.IntN(500)) * time.Millisecond)
			case 3, 4:
				if len(under) > 0 {
					g.replied(under[0], asks[under[0]].Kind, reply{level: levels[random.IntN(3)], sent: now}, now)
					g.leave(under[0])
					under = under[1:]
				}
			case 5:
				if len(under) > 0 && random.IntN(4) == 0 {
					r := reply{verdict: verdict(random.IntN(int(verdictBlocked) + 1)), level: levels[random.IntN(3)], sent: now, why: "busy"}
					if r.verdict >= verdictRefused {
						r.until = now.Add(time.Duration(random.IntN(120)) * time.Second)
					}
					g.replied(under[0], asks[under[0]].Kind, r, now)
					g.leave(under[0])
					under = under[1:]
				}
			}
			take()
		}
		// Without any more answers, no request waits forever.
		for steps := 0; g.waiting.len() > 0; steps++ {
			next := g.next(now)
			if next.IsZero() || steps > 10000 {
				t.Fatalf("seed %d: %d wait, and nothing will let them pass", seed, g.waiting.len())
			}
			now = next
			take()
		}
		if next := g.next(now); !next.IsZero() {
			t.Fatalf("seed %d: looks again at %s with nobody waiting", seed, next)
		}
	}
}
