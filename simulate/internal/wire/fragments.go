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
	// fragmentsAtMost is how many bytes of fragments are kept, twice over.
	fragmentsAtMost = 4 << 20
	// A fragment of fewer bytes is encoded sooner than found; one of more is rarely shared.
	fragmentLeast, fragmentMost = 128, 64 << 10
	// FragmentsFrom is how many objects a list has for which fragments are looked for.
	FragmentsFrom = 32
	// fragmentsMet is how many parts are remembered that were met once, at most.
	fragmentsMet = 1 << 17
	// fragmentBits is how many bits say that there may be a fragment.
	fragmentBits = 1 << 18
)

// Fragments are the encoded forms of parts that stored objects have in common (see sharing): the containers of a hundred
// Pods of one template are encoded once, and copied for the others.
//
// A part is known by its address, which stays its own because the fragment holds it. It is kept when it is encoded for the
// second time, without the parts inside it. What was not asked for in a while is dropped: when the young are many, they
// become the old, and the old go.
type Fragments struct {
	atMost int // bytes; 0: fragmentsAtMost

	mu struct {
		sync.Mutex
		met        []uint32 // marks of parts, by their hash
		bits       []uint64 // one for each fragment, by its hash: most parts have none
		young, old map[fragmentKey]fragment
		bytes      int // of the young
	}
}

// fragmentKey is a part, and what it is encoded as: a field of a protobuf message, or JSON.
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
	part any // so that nothing else has its address
	text []byte
}

// Texts are the texts that were kept last.
func (f *Fragments) Texts() (kept [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, known := range f.mu.young {
		kept = append(kept, known.text)
	}
	return kept
}

// TryOpen gives the fragments to one encoder at a time; another one works without them.
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

// OpenFragments are the fragments in the hands of one encoder. Nil has none.
type OpenFragments struct {
	all  *Fragments
	take bool // a part that is met again is kept
}

func (o *OpenFragments) Close() {
	if o != nil {
		o.all.mu.Unlock()
	}
}

// part is one that is being encoded; the zero part is none.
type part struct {
	key   fragmentKey
	value any
	hash  uint64
	keep  bool // it was met before
	took  bool // of the fragments, before
}

// find returns the fragment of a value, or what end is to be given after it is encoded.
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

// mark is what is remembered of p, and where.
func (p part) mark() (at uint64, mark uint32) { return p.hash % fragmentsMet, uint32(p.hash>>32) | 1 }

// end is told the encoded form of a part that find did not have.
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
