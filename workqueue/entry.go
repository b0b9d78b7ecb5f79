// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

// number names an entry. 0 is no entry.
type number = uint32

type flags uint8

const (
	used           flags = 1 << iota // the entry belongs to a key
	dirty                            // there is work for the key
	held                             // a worker has the key
	notEqualItself                   // the key is not equal to itself: not indexed, never held
	asked                            // dirty because of an Add, not only a deadline
	answering                        // held: it was asked when handed out
)

// entry is the queue's record of a key. With a key of 32 bytes it takes 72.
type entry[K comparable] struct {
	key   K
	since int64 // ready: when it became so; held and asked: when first asked; only delayed: when the deadline was set
	first int64 // ready and asked: when first asked; held: the position of its heldState
	hash  uint32

	// A key is never both ready and held, so both lists share one pair of links. Unused entries use them for the free list.
	next, prev number

	place    uint32 // position in the heap of deadlines plus one; 0 without a deadline
	failures int32
	flags    flags
	priority int8   // of the pending work; of a held key without any: the priority it was handed out with
	flow     uint16 // number of its flow
}

// heldState is the further state of a held key, kept separately because few keys are held at a time.
type heldState struct {
	taken int64 // when the key was handed out
	first int64 // answering: when it was first asked
}

func (e *entry[K]) is(f flags) bool { return e.flags&f != 0 }

// waits reports whether the key has work pending or scheduled that no worker has.
func (e *entry[K]) waits() bool { return e.is(dirty) || e.place != 0 }

// idle reports whether there is nothing left to remember about the key.
func (e *entry[K]) idle() bool {
	return !e.is(dirty|held) && e.place == 0 && e.failures == 0
}
