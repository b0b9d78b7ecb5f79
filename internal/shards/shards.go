// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/sharding"
)

// Most is the largest number of shards.
const Most = 4096

// By is what decides the shard of an object.
type By string

const (
	// Namespace is the object's namespace, empty for an object of a cluster-scoped kind.
	Namespace By = "namespace"
	// UID is the object's UID.
	UID By = "uid"
	// Owner is the UID of the object's controller owner, or the object's own UID if it has none. The
	// API server does not select by it.
	Owner By = "owner"
)

// field returns the path of the field that the server hashes; empty: the server cannot.
func (b By) field() string {
	switch b {
	case Namespace:
		return "object.metadata.namespace"
	case UID:
		return "object.metadata.uid"
	}
	return ""
}

// Of returns the shard of a value among count: the place of the value's hash in the hash space.
func Of(value string, count int) int { return of(hash(value), count) }

// OfBytes is Of, without a conversion.
func OfBytes(value []byte, count int) int { return of(hash(value), count) }

func of(h uint64, count int) int {
	place, _ := bits.Mul64(h, uint64(count))
	return int(place)
}

// hash is FNV-1a with 64 bits, as sharding.HashField computes it, without an allocation.
func hash[T string | []byte](value T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(value) {
		h ^= uint64(value[i])
		h *= 1099511628211
	}
	return h
}

// Set is a set of shards in the form of String. The zero Set is empty.
type Set string

// SetOf returns the set of some shards, in any order.
func SetOf(some ...int) Set {
	some = slices.Clone(some)
	slices.Sort(some)
	some = slices.Compact(some)
	var text strings.Builder
	for i := 0; i < len(some); {
		j := i
		for j+1 < len(some) && some[j+1] == some[j]+1 {
			j++
		}
		if text.Len() > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Itoa(some[i]))
		if j > i {
			text.WriteByte('-')
			text.WriteString(strconv.Itoa(some[j]))
		}
		i = j + 1
	}
	return Set(text.String())
}

// All returns the shards of s, ascending.
func (s Set) All() []int {
	var all []int
	for first, last := range s.ranges() {
		for shard := first; shard <= last; shard++ {
			all = append(all, shard)
		}
	}
	return all
}

// ranges yields the first and last shard of each range. Anything that SetOf does not write is skipped.
func (s Set) ranges() func(yield func(first, last int) bool) {
	return func(yield func(first, last int) bool) {
		for part := range strings.SplitSeq(string(s), ",") {
			text, end, isRange := strings.Cut(part, "-")
			if !isRange {
				end = text
			}
			first, err := strconv.Atoi(text)
			last, err2 := strconv.Atoi(end)
			if err == nil && err2 == nil && !yield(first, last) {
				return
			}
		}
	}
}

// String returns the shards as ranges, such as "0-7,9".
func (s Set) String() string { return string(s) }

// Division is the part of a kind's objects that is held: those of some shards. The zero Division is
// all objects. It is comparable.
type Division struct {
	By    By
	Count int // of all shards
	Held  Set
}

// Everything reports whether d has all objects.
func (d Division) Everything() bool { return d.Count == 0 }

// String describes d, such as "shards 0-7 of 32 by uid". Empty: all objects.
func (d Division) String() string {
	switch {
	case d.Everything():
		return ""
	case d.Held == "":
		return fmt.Sprintf("no shard of %d by %s", d.Count, d.By)
	}
	return fmt.Sprintf("shards %s of %d by %s", d.Held, d.Count, d.By)
}

// Selector returns the shardSelector of a request for the objects of d. Empty: the server cannot
// select them, or all are held.
func (d Division) Selector() string {
	field := d.By.field()
	if d.Everything() || field == "" {
		return ""
	}
	var all []sharding.ShardRangeRequirement
	for first, last := range d.Held.ranges() {
		all = append(all, sharding.ShardRangeRequirement{Key: field, Start: begin(first, d.Count), End: begin(last+1, d.Count)})
	}
	return sharding.NewSelector(all...).String()
}

// begin returns where the range of a shard begins: the least hash of which Of is the shard.
func begin(shard, count int) string {
	if shard >= count {
		return "0x10000000000000000"
	}
	least, rest := bits.Div64(uint64(shard), 0, uint64(count))
	if rest > 0 {
		least++
	}
	return fmt.Sprintf("0x%016x", least)
}

// Holder answers which shards of a Division are held, fast. Make it with HolderOf. It is safe for
// concurrent use.
type Holder struct {
	count int
	held  []bool
}

// HolderOf returns the Holder of d; nil: everything is held.
func HolderOf(d Division) *Holder {
	if d.Everything() {
		return nil
	}
	h := &Holder{count: d.Count, held: make([]bool, d.Count)}
	for _, s := range d.Held.All() {
		if s < d.Count {
			h.held[s] = true
		}
	}
	return h
}

// Has reports whether the shard of value is held.
func (h *Holder) Has(value []byte) bool { return h == nil || h.held[OfBytes(value, h.count)] }

// HasString is Has.
func (h *Holder) HasString(value string) bool { return h == nil || h.held[Of(value, h.count)] }
