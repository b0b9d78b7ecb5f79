// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/shards"
)

const (
	// mostParts is how many watches a handle may have by shards. Above that each of its scopes has
	// one for all held shards.
	mostParts = 64
	// mostRanges is how many ranges of shards a request may name. Above that the client selects.
	mostRanges = 32
)

// division is how the watch scopes of a kind are divided by shards. The zero division: they are
// not. It is comparable.
type division struct {
	shards.Division
	form state.Form
	// undecided: whether the kind is divided is not known yet, so nothing is watched.
	undecided bool
}

// parts divides scopes. A kind of cluster scope is whole if namespaces decide.
func (d division) parts(scopes []listwatch.Scope, clusterWide bool) (parts []listwatch.Scope) {
	switch {
	case d.undecided:
		return nil
	case d.Everything(), clusterWide && d.By == shards.Namespace:
		return scopes
	}
	holder := shards.HolderOf(d.Division)
	each := d.form == state.FormServer && len(scopes)*d.heldCount() <= mostParts
	for _, s := range scopes {
		switch {
		case d.By == shards.Namespace && s.Namespace != "":
			if holder.HasString(s.Namespace) {
				parts = append(parts, s)
			}
		case each:
			for _, shard := range d.Held.All() {
				parts = append(parts, d.part(s, shards.SetOf(shard)))
			}
		case d.Held != "":
			parts = append(parts, d.part(s, d.Held))
		}
	}
	return parts
}

func (d division) heldCount() int { return len(d.Held.All()) }

// part returns the part of s in some shards.
func (d division) part(s listwatch.Scope, held shards.Set) listwatch.Scope {
	s.Division = d.Division
	s.Division.Held = held
	selector := s.Division.Selector()
	if d.form == state.FormServer && strings.Count(selector, "||") < mostRanges {
		s.ShardSelector = selector
	}
	return s
}

// state returns d for users.
func (d division) state() state.Division {
	switch {
	case d.undecided:
		return state.Division{}
	case d.Everything():
		return state.Division{Form: state.FormWhole}
	}
	return state.Division{By: string(d.By), Count: d.Count, Held: string(d.Held), Form: d.form}
}

// replaces reports whether scope s is to follow after the old one: it has shards of it, of the
// same objects otherwise.
func replaces(s, old listwatch.Scope) bool {
	a, b := s.Division, old.Division
	s.Division, s.ShardSelector = listwatch.Division{}, ""
	old.Division, old.ShardSelector = listwatch.Division{}, ""
	return s == old && overlap(a, b)
}

// overlap reports whether both parts have a shard.
func overlap(a, b listwatch.Division) bool {
	return !a.Everything() && !b.Everything() && a.By == b.By && a.Count == b.Count &&
		both(a.Held, b.Held) != ""
}

// within reports whether all shards of a are in b.
func within(a, b shards.Set) bool {
	return both(a, b) == shards.SetOf(a.All()...)
}

// both returns the shards that are in a and in b.
func both(a, b shards.Set) shards.Set {
	all := b.All()
	missing := func(shard int) bool {
		_, found := slices.BinarySearch(all, shard)
		return !found
	}
	return shards.SetOf(slices.DeleteFunc(a.All(), missing)...)
}
