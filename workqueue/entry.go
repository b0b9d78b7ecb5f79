// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

// number names an entry. 0 is no entry.
type number = uint32

type flags uint8

const (
	used      flags = 1 << iota // the entry belongs to a key
	dirty                       // there is work for the key
	held                        // a worker has the key
	strange                     // the key is not equal to itself: it is in no index, and never held
	asked                       // dirty: an Add is why, not a deadline alone
	answering                   // held: it was asked when it was handed out
)

// entry is all the queue knows of a key that no worker has. For a key of 32 bytes it takes 72.
type entry[K comparable] struct {
	key   K
	since int64 // ready: when it became so; held and asked: when that was first; only delayed: when the deadline was set
	first int64 // ready and asked: when it was first asked; held: the place of its grip
	hash  uint32

	// A key is ready or held, never both, so one pair of links serves both lists. Of an unused entry they link the free list.
	next, prev number

	place    uint32 // position in the heap of deadlines plus one; 0 without a deadline
	failures int32
	flags    flags
	priority int8   // of what waits for the key; of a key that is held and for which nothing waits, the one it was handed out with
	flow     uint16 // number of its flow
}

// grip is what the queue knows of a held key beside its entry: few of the keys that it knows are held at a time.
type grip struct {
	taken int64 // when the key was handed out
	first int64 // answering: when it was first asked before
}

func (e *entry[K]) is(f flags) bool { return e.flags&f != 0 }

// waits reports that there is or will be work for the key that no worker has.
func (e *entry[K]) waits() bool { return e.is(dirty) || e.place != 0 }

// idle reports that nothing is left to remember of the key.
func (e *entry[K]) idle() bool {
	return !e.is(dirty|held) && e.place == 0 && e.failures == 0
}
