// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"
)

const (
	shards = 16
	// longest bytes that are looked up: the table holds a copy of them.
	longest = 16 << 10
	// shortest string that is looked up: shorter ones cost less than an entry.
	shortest = 4
)

// Value is a decoded part: a pointer, a map, or the data of a slice or string.
// It is the start of an allocation that belongs to no other value: the table
// points to it weakly. It is not of zero size.
type Value struct {
	Ptr  unsafe.Pointer
	Len  int    // of a slice, whose capacity is its length
	Size uint32 // heap bytes of the part, without the shared parts in it
}

// Ticket is the permission to keep a part. The zero Ticket is none.
type Ticket struct {
	hash  uint64
	epoch uint64
}

// Wanted reports whether the bytes were seen before: decode them into memory of
// their own and call Keep.
func (t Ticket) Wanted() bool { return t.epoch != 0 }

// Table holds the parts that objects share. Make it with NewTable.
type Table struct {
	seed   maphash.Seed
	epoch  atomic.Uint64 // 1, plus the number of Resets
	hits   atomic.Uint64
	misses atomic.Uint64
	shards [shards]shard
}

type shard struct {
	mu struct {
		sync.Mutex
		entries map[uint64]entry
		live    int64 // bytes of the entries' parts
		door    doorkeeper
	}
	_ [32]byte // shards do not share a cache line
}

// entry is a part in the table. Two parts of one hash do not stand together:
// the later one is not shared.
type entry struct {
	site *Site  // nil: a string
	raw  string // empty for a string, which is its own
	ptr  weak.Pointer[byte]
	len  int
	size uint32
}

// NewTable returns an empty table. It takes about 256 KiB when it is used.
func NewTable() *Table {
	t := &Table{seed: maphash.MakeSeed()}
	t.epoch.Store(1)
	sweepAfterCollection(weak.Make(t))
	return t
}

// Look searches the part that s decodes from raw. If it is not found and the
// Ticket is wanted, the caller decodes raw into memory of its own and calls
// Keep. Look does not keep raw.
func (t *Table) Look(s *Site, raw []byte) (v Value, found bool, keep Ticket) {
	if t == nil || !s.Due() {
		return Value{}, false, Ticket{}
	}
	return t.LookDue(s, raw)
}

// LookDue is Look for a value that is Due.
func (t *Table) LookDue(s *Site, raw []byte) (v Value, found bool, keep Ticket) {
	if t == nil || len(raw) == 0 || len(raw) > longest {
		return Value{}, false, Ticket{}
	}
	epoch := t.epoch.Load()
	hash := s.mix(maphash.Bytes(t.seed, raw))
	sh := &t.shards[hash%shards]
	e, known, seen := sh.look(hash, s, raw)
	if known {
		if p := e.ptr.Value(); p != nil {
			t.count(s, true)
			return Value{Ptr: unsafe.Pointer(p), Len: e.len, Size: e.size}, true, Ticket{}
		}
	}
	t.count(s, seen)
	if !seen {
		return Value{}, false, Ticket{}
	}
	return Value{}, false, Ticket{hash: hash, epoch: epoch}
}

// look returns the entry of exactly these bytes. seen: bytes of this hash were
// looked up before.
func (sh *shard) look(hash uint64, s *Site, raw []byte) (e entry, known, seen bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e, known = sh.mu.entries[hash]
	if known && e.site == s && e.raw == string(raw) {
		return e, true, true
	}
	return entry{}, false, sh.mu.door.seen(hash)
}

// Keep enters v, decoded by s from raw with the Ticket of its Look. It returns
// the value to use: the one of another goroutine, if that was first. From now on
// nobody may modify v.
func (t *Table) Keep(s *Site, raw []byte, v Value, keep Ticket) Value {
	if t == nil || !keep.Wanted() {
		return v
	}
	e := entry{site: s, raw: string(raw), ptr: weak.Make((*byte)(v.Ptr)), len: v.Len, size: v.Size}
	sh := &t.shards[keep.hash%shards]
	if first, ok := t.enter(sh, keep, e); ok {
		if p := first.ptr.Value(); p != nil {
			v = Value{Ptr: unsafe.Pointer(p), Len: first.len, Size: first.size}
		}
	}
	return v
}

// enter stores e, unless the table was reset since the Ticket was given: e may
// contain parts of before. It returns the live entry of the same bytes that was
// there before, if any.
func (t *Table) enter(sh *shard, keep Ticket, e entry) (first entry, exists bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if t.epoch.Load() != keep.epoch {
		return entry{}, false
	}
	old, known := sh.mu.entries[keep.hash]
	if known && old.ptr.Value() != nil {
		return old, old.site == e.site && old.raw == e.raw && e.site != nil
	}
	if sh.mu.entries == nil {
		sh.mu.entries = make(map[uint64]entry)
	}
	sh.mu.entries[keep.hash] = e
	sh.mu.live += int64(e.size) - int64(old.size)
	return entry{}, false
}

// String returns the shared string of that content, which may be of any Site.
// shared is false if there is none: the caller allocates the string. It does
// not keep raw.
func (t *Table) String(s *Site, raw []byte) (str string, shared bool) {
	if t == nil || len(raw) < shortest || len(raw) > longest || !s.Due() {
		return "", false
	}
	hash := maphash.Bytes(t.seed, raw)
	sh := &t.shards[hash%shards]
	epoch := t.epoch.Load()
	e, known, seen := sh.lookString(hash)
	if known && e.len == len(raw) {
		if p := e.ptr.Value(); p != nil {
			if str = unsafe.String(p, e.len); str == string(raw) {
				t.count(s, true)
				return str, true
			}
		}
	}
	t.count(s, seen)
	if !seen {
		return "", false
	}
	// Smaller allocations share memory with others.
	own := make([]byte, len(raw), max(len(raw), 16))
	copy(own, raw)
	p := unsafe.SliceData(own)
	e = entry{ptr: weak.Make(p), len: len(raw), size: uint32(cap(own))}
	t.enter(sh, Ticket{hash: hash, epoch: epoch}, e)
	return unsafe.String(p, len(raw)), true
}

func (sh *shard) lookString(hash uint64) (e entry, known, seen bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e, known = sh.mu.entries[hash]; known && e.site == nil {
		return e, true, true
	}
	return entry{}, false, sh.mu.door.seen(hash)
}

func (t *Table) count(s *Site, repeated bool) {
	s.count(repeated)
	if repeated {
		t.hits.Add(1)
	} else {
		t.misses.Add(1)
	}
}

// Reset forgets everything, after code has modified a shared part: what is
// decoded from now on does not contain it.
func (t *Table) Reset() {
	if t == nil {
		return
	}
	t.epoch.Add(1)
	for i := range t.shards {
		t.shards[i].reset()
	}
}

func (sh *shard) reset() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.mu.entries, sh.mu.live, sh.mu.door = nil, 0, doorkeeper{}
}

// Live returns about the heap memory of the parts in the table, in bytes: those
// that died since the last collection of garbage are among them. It is fast.
func (t *Table) Live() (bytes int64) {
	if t == nil {
		return 0
	}
	for i := range t.shards {
		bytes += t.shards[i].bytes()
	}
	return bytes
}

func (sh *shard) bytes() int64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.mu.live
}

// Stats describes a Table.
type Stats struct {
	Entries int
	// Live is the heap memory of the parts in the table, in bytes.
	Live int64
	// Held is what the table itself takes for them, about, in bytes.
	Held int64
	// Hits and Misses count lookups. A hit is a part that was found, or seen
	// before.
	Hits, Misses uint64
}

const (
	ofDoor  = doors * 2
	ofEntry = int64(unsafe.Sizeof(entry{})) + 8 + 72 // its key and its weak pointer
)

// Stats removes the entries of dead parts and describes the others.
func (t *Table) Stats() Stats {
	if t == nil {
		return Stats{}
	}
	out := Stats{Hits: t.hits.Load(), Misses: t.misses.Load()}
	for i := range t.shards {
		t.shards[i].sweep(&out)
	}
	return out
}

// sweep removes the entries of dead parts and adds up the others.
func (sh *shard) sweep(s *Stats) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	before := len(sh.mu.entries)
	for hash, e := range sh.mu.entries {
		if e.ptr.Value() == nil {
			delete(sh.mu.entries, hash)
			sh.mu.live -= int64(e.size)
			continue
		}
		s.Entries++
		s.Live += int64(e.size)
		s.Held += ofEntry + int64(len(e.raw))
	}
	if sh.mu.door != (doorkeeper{}) {
		s.Held += ofDoor
	}
	if live := len(sh.mu.entries); live < before/4 {
		smaller := make(map[uint64]entry, live) // a map does not shrink
		for hash, e := range sh.mu.entries {
			smaller[hash] = e
		}
		sh.mu.entries = smaller
	}
}

// collected is an object that nobody uses: its cleanup runs after each
// collection of garbage.
type collected struct {
	_ *byte
	_ [2]uint64
}

// sweepAfterCollection removes the table's dead entries after each collection
// of garbage, which alone makes them dead, as long as the table is in use.
func sweepAfterCollection(t weak.Pointer[Table]) {
	runtime.AddCleanup(new(collected), func(t weak.Pointer[Table]) {
		if live := t.Value(); live != nil {
			live.Stats()
			sweepAfterCollection(t)
		}
	}, t)
}
