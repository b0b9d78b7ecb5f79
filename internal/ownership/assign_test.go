// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// histories is how many random histories each property is tested on.
const histories = 300

// history is a random cluster: its members join and leave.
type history struct {
	*rand.Rand
	seed    uint64
	weights bool // members have different weights
	shards  int
	members []Member
	holders []string
	joined  int
}

func newHistory(seed uint64, weights bool) *history {
	h := &history{Rand: rand.New(rand.NewPCG(seed, 1)), seed: seed, weights: weights}
	h.shards = 1 + h.IntN(200)
	for range 1 + h.IntN(12) {
		h.join()
	}
	h.holders = Assign(h.members, h.shards, nil)
	return h
}

func (h *history) join() string {
	h.joined++
	m := Member{Name: fmt.Sprintf("operator-%d-%d", h.seed, h.joined), Weight: 1}
	if h.weights {
		m.Weight = h.IntN(8) // 0 counts as 1
	}
	h.members = append(h.members, m)
	return m.Name
}

func (h *history) leave() string {
	i := h.IntN(len(h.members))
	name := h.members[i].Name
	h.members = slices.Delete(h.members, i, i+1)
	return name
}

// step makes one member join or leave, and returns its name and how many members there are with it.
func (h *history) step() (name string, n int, joined bool) {
	if len(h.members) < 2 || len(h.members) < 15 && h.IntN(2) == 0 {
		name = h.join()
		return name, len(h.members), true
	}
	n = len(h.members)
	return h.leave(), n, false
}

func counts(owners []string) map[string]int {
	n := map[string]int{}
	for _, owner := range owners {
		n[owner]++
	}
	return n
}

// moves returns the shards whose owner differs.
func moves(before, after []string) (moved []int) {
	for s := range after {
		if before[s] != after[s] {
			moved = append(moved, s)
		}
	}
	return moved
}

// checkStep checks an assignment after name, one of n members, joined or left.
type checkStep func(h *history, before, after []string, name string, n int, joined bool)

// eachStep runs histories of joins and leaves, and checks each assignment.
func eachStep(t *testing.T, weights bool, check checkStep) {
	t.Helper()
	for seed := range uint64(histories) {
		h := newHistory(seed, weights)
		for range 12 {
			name, n, joined := h.step()
			before := h.holders
			h.holders = Assign(h.members, h.shards, before)
			check(h, before, h.holders, name, n, joined)
			if t.Failed() {
				t.Fatalf("seed %d: %d shards, members %v", seed, h.shards, h.members)
			}
		}
	}
}

func TestAssign_SharesDifferFromExactOnesByLessThanAShard(t *testing.T) {
	for _, weights := range []bool{false, true} {
		eachStep(t, weights, func(h *history, _, after []string, _ string, _ int, _ bool) {
			all := 0
			for _, m := range h.members {
				all += max(m.Weight, 1)
			}
			has := counts(after)
			for _, m := range h.members {
				if exact := h.shards * max(m.Weight, 1); abs(has[m.Name]*all-exact) >= all {
					t.Errorf("%s has %d shards, want %d/%d, by less than one", m.Name, has[m.Name], exact, all)
				}
				delete(has, m.Name)
			}
			if len(has) > 0 {
				t.Errorf("shards belong to %v, who are not members", has)
			}
		})
	}
}

func abs(n int) int { return max(n, -n) }

func TestAssign_AJoinMovesOnlyTheShardsOfTheNewMember_M34(t *testing.T) {
	eachStep(t, false, func(h *history, before, after []string, name string, n int, joined bool) {
		moved := moves(before, after)
		if !joined {
			return
		}
		if len(moved) != h.shards/n {
			t.Errorf("%d shards moved, want %d/%d rounded down", len(moved), h.shards, n)
		}
		for _, s := range moved {
			if after[s] != name {
				t.Errorf("shard %d moved from %q to %q, which was a member before", s, before[s], after[s])
			}
		}
	})
}

func TestAssign_ALeaveMovesOnlyTheShardsOfTheOneThatLeft_M34(t *testing.T) {
	eachStep(t, false, func(h *history, before, after []string, name string, n int, joined bool) {
		if joined {
			return
		}
		if moved := moves(before, after); len(moved) > (h.shards+n-1)/n {
			t.Errorf("%d shards moved, want at most %d/%d rounded up", len(moved), h.shards, n)
		}
		for _, s := range moves(before, after) {
			if before[s] != name {
				t.Errorf("shard %d moved from %q to %q, but %s left", s, before[s], after[s], name)
			}
		}
	})
}

// With different weights a change of one member may take shards from others, since each share
// is bounded from both sides. The bound is one shard for each member.
func TestAssign_WithWeightsAChangeMovesAtMostOneShardMorePerMember(t *testing.T) {
	eachStep(t, true, func(h *history, before, after []string, name string, n int, _ bool) {
		least := max(counts(before)[name], counts(after)[name])
		if moved := len(moves(before, after)); moved > least+n {
			t.Errorf("%d shards moved, want at most the %d of %s, and %d", moved, least, name, n)
		}
	})
}

func TestAssign_ABalancedAssignmentIsKept(t *testing.T) {
	for _, weights := range []bool{false, true} {
		eachStep(t, weights, func(h *history, _, after []string, _ string, _ int, _ bool) {
			if moved := moves(after, Assign(h.members, h.shards, after)); len(moved) > 0 {
				t.Errorf("assigned again, shards %v moved", moved)
			}
		})
	}
}

// Members see a change of several shards at different times. All of them have to aim at the same.
func TestAssign_ACourseOfMovesHasOneAim(t *testing.T) {
	for _, weights := range []bool{false, true} {
		eachStep(t, weights, func(h *history, before, after []string, _ string, _ int, _ bool) {
			partly := slices.Clone(before)
			for _, s := range moves(before, after) {
				switch h.IntN(3) {
				case 0:
					partly[s] = "" // released
				case 1:
					partly[s] = after[s] // and claimed
				}
			}
			if differing := moves(after, Assign(h.members, h.shards, partly)); len(differing) > 0 {
				t.Errorf("after some of the moves shards %v have another owner", differing)
			}
		})
	}
}

func TestAssign_OrderOfMembersDoesNotMatter(t *testing.T) {
	eachStep(t, true, func(h *history, before, after []string, _ string, _ int, _ bool) {
		shuffled := slices.Clone(h.members)
		h.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if differing := moves(after, Assign(shuffled, h.shards, before)); len(differing) > 0 {
			t.Errorf("with the members in another order shards %v have another owner", differing)
		}
	})
}

// Holders are whatever the Leases name, balanced or not.
func TestAssign_AnyHoldersAreBalanced(t *testing.T) {
	for seed := range uint64(histories) {
		h := newHistory(seed, false)
		for s := range h.holders {
			switch h.IntN(4) {
			case 0:
				h.holders[s] = ""
			case 1:
				h.holders[s] = "gone"
			default:
				h.holders[s] = h.members[h.IntN(len(h.members))].Name
			}
		}
		n := len(h.members)
		after := Assign(h.members, h.shards, h.holders[:h.IntN(h.shards+1)])
		for name, has := range counts(after) {
			if has < h.shards/n || has > (h.shards+n-1)/n {
				t.Errorf("seed %d: %s has %d of %d shards of %d members", seed, name, has, h.shards, n)
			}
		}
	}
}

func TestAssign_Table(t *testing.T) {
	a, b := Member{"a", 1}, Member{"b", 1}
	for name, c := range map[string]struct {
		members []Member
		holders string // of each shard; "-" is nobody, "x" has gone
		want    string // sorted
	}{
		"nobody":                      {nil, "ab", ""},
		"one member":                  {[]Member{a}, "xx-", "aaa"},
		"no shards":                   {[]Member{a, b}, "", ""},
		"all shards are held":         {[]Member{a, b}, "aab", "aab"},
		"the odd shard stays":         {[]Member{a, b}, "abb", "abb"},
		"gone":                        {[]Member{a, b}, "axxb", "aabb"},
		"weights":                     {[]Member{{"a", 3}, b}, "bbbb", "aaab"},
		"a weight of 0 counts as 1":   {[]Member{{"a", 0}, {"b", -5}}, "----", "aabb"},
		"more members than shards":    {[]Member{a, b, {"c", 1}}, "c", "c"},
		"weights that would overflow": {[]Member{{"a", 1 << 62}, {"b", 1 << 62}}, "aaaa", "aabb"},
	} {
		var holders []string
		for _, r := range c.holders {
			holders = append(holders, strings.Trim(string(r), "-"))
		}
		got := Assign(c.members, len(holders), holders)
		sorted := slices.Clone(got)
		slices.Sort(sorted)
		if strings.Join(sorted, "") != c.want || len(got) != len(holders) {
			t.Errorf("%s: the owners of %q are %q, want %q in some order", name, c.holders, got, c.want)
		}
	}
}

// Shards that leave one member spread over all others, also where names differ in the
// last character alone.
func TestAssign_TheShardsOfOneSpread(t *testing.T) {
	var members []Member
	for i := range 10 {
		members = append(members, Member{fmt.Sprintf("operator-7d9f8b6c5-%d", i), 1})
	}
	const shards = 4000
	first := Assign(members, shards, nil)
	score := map[string][2]int{}
	for s, owner := range first {
		half := score[owner]
		half[s*2/shards]++
		score[owner] = half
	}
	for name, half := range score {
		if half[0] < 130 || half[1] < 130 {
			t.Errorf("%s has %v shards of each half, want about 200", name, half)
		}
	}
}

func TestAssign_AllocatesLittle(t *testing.T) {
	members, holders := large()
	perRun := testing.AllocsPerRun(5, func() { Assign(members[1:], len(holders), holders) })
	if perRun > 20 {
		t.Errorf("%v allocations, want at most 20", perRun)
	}
}

func large() (members []Member, holders []string) {
	for i := range 50 {
		members = append(members, Member{fmt.Sprintf("operator-%d", i), 1 + i%3})
	}
	return members, Assign(members, 4096, nil)
}

func BenchmarkAssign(b *testing.B) {
	members, holders := large()
	for name, c := range map[string]struct {
		members []Member
		holders []string
	}{"new": {members, nil}, "leave": {members[1:], holders}, "same": {members, holders}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Assign(c.members, len(holders), c.holders)
			}
		})
	}
}
