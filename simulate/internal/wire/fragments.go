// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"reflect"
	"sync"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

const (
	// fragmentsAtMost bounds the bytes of fragments in each of the two generations.
	fragmentsAtMost = 4 << 20
	// Encoding fewer bytes is faster than finding them; longer parts are rarely shared.
	fragmentLeast, fragmentMost = 128, 64 << 10
	// FragmentsFrom is the number of objects from which a list looks for fragments.
	FragmentsFrom = 32
	// fragmentsMet bounds the parts that are remembered after one occurrence.
	fragmentsMet = 1 << 17
	// fragmentBits is the number of bits that show whether there may be a fragment.
	fragmentBits = 1 << 18
)

// Fragments are the encoded forms of parts that stored objects share (see sharing): the
// containers of a hundred Pods of one template are encoded once, and copied for the others.
//
// A part is identified by its address, which stays unique because the fragment holds the
// part. A part is cached when it is encoded for the second time, without the parts inside
// it. Fragments that were not used for a while are dropped: when the young generation is
// full, it becomes the old one, and the old one is dropped.
type Fragments struct {
	atMost int // bytes; 0: fragmentsAtMost

	mu struct {
		sync.Mutex
		met        []uint32 // hashes of parts, indexed by hash
		bits       []uint64 // one for each fragment, indexed by hash: most parts have no fragment
		young, old map[fragmentKey]fragment
		bytes      int // of the young generation
	}
}

// fragmentKey is a part and its form: a field of a protobuf message, or JSON.
type fragmentKey struct {
	address uintptr
	items   int
	field   *protoField // nil: JSON
}

func (k fragmentKey) hash() uint64 {
	h := uint64(k.address) ^ uint64(k.items)<<48
	if k.field != nil {
		h = revisions.Mix(h) ^ k.field.tag
	}
	return revisions.Mix(h)
}

type fragment struct {
	part any // keeps the address from being reused
	text []byte
}

// Texts returns the texts that were cached last.
func (f *Fragments) Texts() (kept [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, known := range f.mu.young {
		kept = append(kept, known.text)
	}
	return kept
}

// TryOpen lends the fragments to one encoder at a time; others work without them.
func (f *Fragments) TryOpen() *OpenFragments {
	if f == nil || !f.mu.TryLock() {
		return nil
	}
	if f.mu.met == nil {
		f.mu.met = make([]uint32, fragmentsMet)
		f.mu.bits = make([]uint64, fragmentBits/64)
		f.mu.young = map[fragmentKey]fragment{}
	}
	return &OpenFragments{f, true}
}

// OpenFragments are the fragments while one encoder has them. Nil has none.
type OpenFragments struct {
	all  *Fragments
	take bool // cache a part that occurs again
}

func (o *OpenFragments) Close() {
	if o != nil {
		o.all.mu.Unlock()
	}
}

// part is a part that is being encoded; the zero part is none.
type part struct {
	key   fragmentKey
	value any
	hash  uint64
	keep  bool // it occurred before
	took  bool // fragments used before it
}

// find returns the fragment of a value, or the part to pass to end once it is encoded.
func (o *OpenFragments) find(value any, field *protoField) (text []byte, p part) {
	if o == nil {
		return nil, part{}
	}
	key := fragmentKey{field: field}
	switch v := value.(type) {
	case map[string]any:
		key.items = len(v)
	case []any:
		key.items = len(v)
	}
	if key.items == 0 {
		return nil, part{}
	}
	key.address = reflect.ValueOf(value).Pointer()
	p = part{key: key, value: value, hash: key.hash(), took: o.take}
	if known := o.all.getLocked(p); known != nil {
		return known, part{}
	}
	p.keep = o.take && o.all.metLocked(p)
	o.take = o.take && !p.keep
	return nil, p
}

// mark returns the index and the mark by which p is remembered.
func (p part) mark() (at uint64, mark uint32) { return p.hash % fragmentsMet, uint32(p.hash>>32) | 1 }

// end records the encoded form of a part that find did not have.
func (o *OpenFragments) end(p part, text []byte) {
	if p.value == nil {
		return
	}
	o.take = p.took
	switch size := len(text); {
	case size < fragmentLeast || size > fragmentMost:
	case p.keep:
		o.all.keepLocked(p, fragment{p.value, append(make([]byte, 0, size), text...)})
	case p.took:
		o.all.meetLocked(p)
	}
}

func (f *Fragments) metLocked(p part) bool {
	at, mark := p.mark()
	return f.mu.met[at] == mark
}

func (f *Fragments) meetLocked(p part) {
	at, mark := p.mark()
	f.mu.met[at] = mark
}

func (f *Fragments) getLocked(p part) []byte {
	bit := p.hash % fragmentBits
	if f.mu.bits[bit/64]&(1<<(bit%64)) == 0 {
		return nil
	}
	if known, ok := f.mu.young[p.key]; ok {
		return known.text
	}
	known, ok := f.mu.old[p.key]
	if ok {
		f.keepLocked(p, known)
	}
	return known.text
}

func (f *Fragments) keepLocked(p part, known fragment) {
	if f.mu.bytes += len(known.text); f.mu.bytes > cmp.Or(f.atMost, fragmentsAtMost) {
		f.mu.young, f.mu.old, f.mu.bytes = map[fragmentKey]fragment{}, f.mu.young, len(known.text)
		clear(f.mu.bits)
		for key := range f.mu.old {
			f.setBitLocked(key.hash())
		}
	}
	f.mu.young[p.key] = known
	f.setBitLocked(p.hash)
}

func (f *Fragments) setBitLocked(hash uint64) {
	bit := hash % fragmentBits
	f.mu.bits[bit/64] |= 1 << (bit % 64)
}
