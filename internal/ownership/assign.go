// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"slices"
	"strings"
)

// Member is a member that shards are assigned to.
type Member struct {
	// Name is the member's identity. It is unique.
	Name string
	// Weight is the member's part of the shards relative to that of others. Below 1 counts as 1,
	// above 1<<31 as 1<<31.
	Weight int
}

// maxWeight bounds weights, so that a weight times a number of shards fits 64 bits.
const maxWeight = 1 << 31

// Assign returns the owner of each shard, or "" for each shard if there are no members. holders has
// the present holder of each shard: "" or a name that is not among the members' means that nobody
// holds it, as does a missing element. Assign is pure, and the order of members does not matter.
//
// The number of shards of a member, its quota, differs by less than 1 from its exact share by
// weight. A shard stays with its holder unless that has more shards than its quota. Where the
// assignment takes shards from a member, or gives shards to several, rendezvous hashing chooses.
// From a balanced assignment among members of equal weight, n with the one that joins or leaves,
//
//   - a join moves ⌊shards/n⌋ shards, all of them to the new member;
//   - a leave moves the shards of the one that left, at most ⌈shards/n⌉.
//
// If some of the moves of an assignment have been made, and no others, Assign returns the same
// assignment. So members that see different numbers of them agree.
func Assign(members []Member, shards int, holders []string) (owners []string) {
	owners = make([]string, max(shards, 0))
	if len(members) == 0 || shards <= 0 {
		return owners
	}
	a := newAssignment(members, holders[:min(len(holders), shards)], shards)
	a.setQuotas(shards)
	a.takeExcess()
	a.giveFree()
	for shard, member := range a.owner {
		owners[shard] = a.members[member].name
	}
	return owners
}

// assignment is the state of one call of Assign.
type assignment struct {
	members []assignee // by name
	owner   []int32    // by shard: the index of its owner, or nobody
}

const nobody = -1

// assignee is a member during an assignment.
type assignee struct {
	name      string
	hash      uint64
	weight    uint64
	remainder uint64 // of the exact share, in parts of the weight of all
	quota     int
	has       int
}

func newAssignment(members []Member, holders []string, shards int) *assignment {
	a := &assignment{members: make([]assignee, len(members)), owner: make([]int32, shards)}
	for i, m := range members {
		weight := uint64(min(max(m.Weight, 1), maxWeight))
		a.members[i] = assignee{name: m.Name, hash: hashName(m.Name), weight: weight}
	}
	slices.SortFunc(a.members, func(x, y assignee) int { return strings.Compare(x.name, y.name) })
	index := make(map[string]int32, len(members))
	for i := range a.members {
		index[a.members[i].name] = int32(i)
	}
	for shard := range a.owner {
		a.owner[shard] = nobody
		if shard >= len(holders) {
			continue
		}
		if i, ok := index[holders[shard]]; ok {
			a.owner[shard] = i
			a.members[i].has++
		}
	}
	return a
}

// setQuotas gives each member the whole part of its exact share. The shards that remain go, one
// each, to members whose share is not whole: first to those that have more than the whole part,
// so that fewer shards move, then by the size of the remainder.
func (a *assignment) setQuotas(shards int) {
	var all uint64
	for i := range a.members {
		all += a.members[i].weight
	}
	left := shards
	order := make([]*assignee, len(a.members))
	for i := range a.members {
		m := &a.members[i]
		product := uint64(shards) * m.weight
		m.quota, m.remainder = int(product/all), product%all
		left -= m.quota
		order[i] = m
	}
	slices.SortFunc(order, func(x, y *assignee) int {
		return cmp.Or(
			compareBools(y.remainder > 0, x.remainder > 0),
			compareBools(y.has > y.quota, x.has > x.quota),
			cmp.Compare(y.remainder, x.remainder),
			cmp.Compare(y.score(nobody), x.score(nobody)),
			strings.Compare(x.name, y.name),
		)
	})
	for _, m := range order[:left] {
		m.quota++
	}
}

// takeExcess takes from each member that has more than its quota the shards for which the member
// scores lowest.
func (a *assignment) takeExcess() {
	type scored struct {
		score uint64
		shard int
	}
	var own []scored
	for i := range a.members {
		m := &a.members[i]
		if m.has <= m.quota {
			continue
		}
		own = own[:0]
		for shard, owner := range a.owner {
			if owner == int32(i) {
				own = append(own, scored{m.score(shard), shard})
			}
		}
		slices.SortFunc(own, func(x, y scored) int {
			return cmp.Or(cmp.Compare(x.score, y.score), cmp.Compare(x.shard, y.shard))
		})
		for _, s := range own[:m.has-m.quota] {
			a.owner[s.shard] = nobody
		}
		m.has = m.quota
	}
}

// giveFree gives each shard that nobody has to the member below its quota that scores highest for
// it.
func (a *assignment) giveFree() {
	below := make([]int32, 0, len(a.members))
	for i := range a.members {
		if a.members[i].has < a.members[i].quota {
			below = append(below, int32(i))
		}
	}
	for shard, owner := range a.owner {
		if owner != nobody {
			continue
		}
		best, most := 0, a.members[below[0]].score(shard)
		for at, i := range below[1:] {
			if score := a.members[i].score(shard); score > most {
				best, most = at+1, score
			}
		}
		m := &a.members[below[best]]
		a.owner[shard] = below[best]
		if m.has++; m.has == m.quota {
			below = slices.Delete(below, best, best+1)
		}
	}
}

// score is the member's rendezvous weight for a shard. Every bit depends on all of the name
// and the shard.
func (m *assignee) score(shard int) uint64 {
	return mix(m.hash + uint64(shard+2)*0x9e3779b97f4a7c15)
}

// hashName is FNV-1a, mixed: its high bits alone hardly depend on the last characters.
func hashName(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return mix(h)
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// compareBools orders false before true.
func compareBools(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}
