// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import "math/bits"

const (
	smallestTable = 16
	keptTable     = 4096 // slots; never freed: bursts of up to 3000 keys allocate nothing once warm
)

// slot has an entry's number and hash, so that probing and rehashing do not touch the entries.
type slot struct {
	hash uint32
	n    number // 0: empty
}

// table is an open-addressing index from hash to entry number, with linear probing. A hash's home is its upper bits, so that
// slots are nearly sorted by hash and a rehash passes through memory once.
type table struct {
	slots []slot
	shift uint8 // 32 minus the number of bits that address a slot
	count int
}

// home returns the first slot to probe for hash. The table must have slots.
func (t *table) home(hash uint32) uint32 { return hash >> t.shift }

func (t *table) mask() uint32 { return uint32(len(t.slots) - 1) }

func (t *table) insert(hash uint32, n number) {
	if 4*(t.count+1) > 3*len(t.slots) {
		t.resize(max(smallestTable, 2*len(t.slots)))
	}
	t.put(slot{hash: hash, n: n})
	t.count++
}

func (t *table) put(s slot) {
	i := t.home(s.hash)
	for t.slots[i].n != 0 {
		i = (i + 1) & t.mask()
	}
	t.slots[i] = s
}

// find returns the slot of the entry n, which must be in the table.
func (t *table) find(hash uint32, n number) uint32 {
	i := t.home(hash)
	for t.slots[i].n != n {
		i = (i + 1) & t.mask()
	}
	return i
}

func (t *table) rename(hash uint32, from, to number) { t.slots[t.find(hash, from)].n = to }

// remove removes the entry n, and moves up the entries behind it that the gap would separate from their home.
func (t *table) remove(hash uint32, n number) {
	gap := t.find(hash, n)
	for i := (gap + 1) & t.mask(); t.slots[i].n != 0; i = (i + 1) & t.mask() {
		fromHome := (i - t.home(t.slots[i].hash)) & t.mask()
		fromGap := (i - gap) & t.mask()
		if fromHome >= fromGap {
			t.slots[gap] = t.slots[i]
			gap = i
		}
	}
	t.slots[gap] = slot{}
	t.count--
	if len(t.slots) > keptTable && 8*t.count < len(t.slots) {
		t.resize(len(t.slots) / 2)
	}
}

func (t *table) resize(size int) {
	old := t.slots
	t.slots = make([]slot, size)
	t.shift = uint8(32 - bits.TrailingZeros(uint(size)))
	for _, s := range old {
		if s.n != 0 {
			t.put(s)
		}
	}
}
