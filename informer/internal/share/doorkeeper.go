// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package share

// doors is the number of first sights that a shard remembers.
const doors = 8192

// doorkeeper remembers hashes that were seen once, in a fixed amount of memory:
// a newer one replaces an older one. The zero value is ready for use.
type doorkeeper struct {
	prints *[doors]uint16
}

// seen reports whether hash was seen before, as far as is remembered, and
// remembers it.
func (d *doorkeeper) seen(hash uint64) bool {
	if d.prints == nil {
		d.prints = new([doors]uint16)
	}
	at, print := hash/shards%doors, uint16(hash>>48)|1
	if d.prints[at] == print {
		return true
	}
	d.prints[at] = print
	return false
}
