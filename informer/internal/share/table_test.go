// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// part is a decoded value for tests.
type part struct {
	text string
	next *part
}

// decode returns the part of raw from t, or a new one that is entered if the
// table wants it.
func decode(t *Table, s *Site, raw string) *part {
	v, found, keep := t.Look(s, []byte(raw))
	if found {
		return (*part)(v.Ptr)
	}
	p := &part{text: strings.Clone(raw)}
	if keep.Wanted() {
		p = (*part)(t.Keep(s, []byte(raw), Value{Ptr: unsafe.Pointer(p), Len: 1, Size: 32}, keep).Ptr)
	}
	return p
}

func TestTable_ThirdSightIsThePartOfTheSecond_D2(t *testing.T) {
	table, site := NewTable(), new(Site)
	first, second, third := decode(table, site, "labels"), decode(table, site, "labels"), decode(table, site, "labels")
	if first == second || second != third {
		t.Errorf("parts at %p, %p, %p: the second and third are to be one, and not the first", first, second, third)
	}
	if third.text != "labels" {
		t.Errorf("the shared part is %q, want what its bytes mean", third.text)
	}
	if got := table.Stats(); got.Entries != 1 || got.Live != 32 || table.Live() != got.Live {
		t.Errorf("stats %+v, want one entry of 32 bytes", got)
	}
	runtime.KeepAlive(second)
}

func TestTable_SameBytesElsewhereAreAnotherPart_D2(t *testing.T) {
	table, a, b := NewTable(), new(Site), new(Site)
	var ofA, ofB *part
	for range 3 {
		ofA, ofB = decode(table, a, "same"), decode(table, b, "same")
	}
	if ofA == ofB {
		t.Error("two sites share a part: its bytes mean something else to each")
	}
}

// A hash alone is no proof: parts whose hashes collide are told apart by their bytes.
func TestTable_CollidingHashesAreNotConfused_D2(t *testing.T) {
	table, site := NewTable(), new(Site)
	decode(table, site, "one")
	kept := decode(table, site, "one")
	hash := site.mix(hashOf(table, "one"))
	sh := &table.shards[hash%shards]
	if _, known, _ := sh.look(hash, site, []byte("two")); known {
		t.Error("other bytes of the same hash are taken for the part")
	}
	for range 2 {
		table.String(site, []byte("string"))
	}
	str, _ := table.String(site, []byte("string"))
	hash = hashOf(table, "other!")
	sh = &table.shards[hash%shards]
	table.enter(sh, Ticket{hash: hash, epoch: 1}, stringEntry(table, "string"))
	if got, shared := table.String(site, []byte("other!")); shared && got != "other!" {
		t.Errorf("string %q, want its own content", got)
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(str)
}

func hashOf(t *Table, raw string) uint64 { return maphash.String(t.seed, raw) }

// stringEntry returns the table's entry of a string.
func stringEntry(t *Table, content string) entry {
	hash := hashOf(t, content)
	sh := &t.shards[hash%shards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.mu.entries[hash]
}

func TestTable_StringsAreSharedByContent_D2(t *testing.T) {
	table, a, b := NewTable(), new(Site), new(Site)
	raw := []byte("node-17.example")
	if _, shared := table.String(a, raw); shared {
		t.Error("a string is shared at its first sight")
	}
	one, shared := table.String(b, raw)
	two, again := table.String(a, raw)
	if !shared || !again || unsafe.StringData(one) != unsafe.StringData(two) {
		t.Errorf("strings %q (%v) and %q (%v), want one", one, shared, two, again)
	}
	raw[0] = 'X'
	if one != "node-17.example" {
		t.Errorf("string %q: it shares memory with the bytes that it was read from", one)
	}
	if _, shared := table.String(a, raw); shared {
		t.Error("other content is shared")
	}
}

func TestTable_ResetForgetsWhatWasModified_D2(t *testing.T) {
	table, site := NewTable(), new(Site)
	decode(table, site, "part")
	shared := decode(table, site, "part")
	shared.text = "modified" // by code that does not heed that cached objects are read-only
	table.Reset()
	for range 3 {
		if p := decode(table, site, "part"); p == shared || p.text != "part" {
			t.Fatalf("decoded %q after the reset, want a part as of its bytes", p.text)
		}
	}
}

// A part decoded across a Reset may contain a part that was found before it.
func TestTable_PartBegunBeforeAResetIsNotKept_D2(t *testing.T) {
	table, outer, inner := NewTable(), new(Site), new(Site)
	decode(table, inner, "inner")
	shared := decode(table, inner, "inner")
	table.Look(outer, []byte("outer"))
	_, _, keep := table.Look(outer, []byte("outer"))
	p := &part{text: "outer", next: decode(table, inner, "inner")}
	if !keep.Wanted() || p.next != shared {
		t.Fatal("nothing is kept; this tests nothing")
	}
	table.Reset()
	table.Keep(outer, []byte("outer"), Value{Ptr: unsafe.Pointer(p), Len: 1, Size: 32}, keep)
	if v, found, _ := table.Look(outer, []byte("outer")); found {
		t.Errorf("found %p after the reset; it contains a part of before", v.Ptr)
	}
}

func TestTable_LiveStaysAndDeadGoes_D3(t *testing.T) {
	table, site := NewTable(), new(Site)
	var live []*part
	for i := range 1000 {
		raw := fmt.Sprintf("part %d", i)
		decode(table, site, raw)
		p := decode(table, site, raw)
		if i%10 == 0 {
			live = append(live, p)
		}
	}
	runtime.GC()
	if got := table.Stats(); got.Entries != len(live) {
		t.Errorf("%d entries, want %d: those that are in use", got.Entries, len(live))
	}
	for i, p := range live {
		if again := decode(table, site, fmt.Sprintf("part %d", i*10)); again != p {
			t.Fatalf("part %d is decoded again although it is in use", i*10)
		}
	}
	clear(live)
	for range 1000 {
		runtime.GC()
		if table.Stats().Entries == 0 {
			return
		}
	}
	t.Errorf("stats %+v, want none: no part is in use", table.Stats())
}

// Without anybody's doing: a collection of garbage removes the entries.
func TestTable_CollectionRemovesTheDead_D3(t *testing.T) {
	table, site := NewTable(), new(Site)
	for i := range 100 {
		for range 2 {
			decode(table, site, fmt.Sprint("part ", i))
		}
	}
	entries := func() (n int) {
		for i := range table.shards {
			sh := &table.shards[i]
			sh.mu.Lock()
			n += len(sh.mu.entries)
			sh.mu.Unlock()
		}
		return n
	}
	if entries() == 0 {
		t.Fatal("nothing was entered; this tests nothing")
	}
	for range 1000 {
		runtime.GC()
		if entries() == 0 {
			return
		}
	}
	t.Errorf("%d entries of dead parts are left", entries())
}

func TestTable_DeadStringsGo_D3(t *testing.T) {
	table, site := NewTable(), new(Site)
	for i := range 1000 {
		for range 2 {
			table.String(site, fmt.Appendf(nil, "s%d-x", i))
		}
	}
	for range 1000 {
		runtime.GC()
		if table.Stats().Entries == 0 {
			return
		}
	}
	t.Errorf("%d entries, want none: no string is in use", table.Stats().Entries)
}

func TestTable_UniqueValuesCostAConstant_D3(t *testing.T) {
	table, sites := NewTable(), make([]Site, 64)
	var held []*part
	raw := make([]byte, 0, 64)
	const constant = 1 << 20
	for i := range 300_000 {
		s := &sites[i%len(sites)]
		raw = fmt.Appendf(raw[:0], "unique value number %d", i)
		if _, found, keep := table.Look(s, raw); found || keep.Wanted() {
			held = append(held, decode(table, s, string(raw))) // a print that collides
		}
		if _, shared := table.String(s, raw); shared {
			held = append(held, &part{text: string(raw)})
		}
	}
	got := table.Stats()
	if got.Held > constant {
		t.Errorf("the table takes %d bytes after unique values, want at most %d", got.Held, constant)
	}
	if len(held) > 3000 {
		t.Errorf("%d of the unique values were taken for repeated ones, want few", len(held))
	}
}

func TestTable_TableIsFreedWithItsOwner_D3(t *testing.T) {
	freed := make(chan struct{})
	func() {
		table := NewTable()
		decode(table, new(Site), "part")
		runtime.AddCleanup(table, func(freed chan struct{}) { close(freed) }, freed)
	}()
	for range 1000 {
		runtime.GC()
		select {
		case <-freed:
			return
		default:
		}
	}
	t.Error("a table that nobody uses is kept")
}

func TestTable_NilSharesNothing(t *testing.T) {
	var table *Table
	for range 3 {
		if _, found, keep := table.Look(new(Site), []byte("part")); found || keep.Wanted() {
			t.Error("no table has a part")
		}
		if _, shared := table.String(new(Site), []byte("part")); shared {
			t.Error("no table has a string")
		}
	}
	table.Reset()
	if table.Stats() != (Stats{}) {
		t.Error("no table has stats")
	}
}

func TestTable_ManyGoroutinesGetEqualParts_D2(t *testing.T) {
	table, site := NewTable(), new(Site)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			var last [50]*part
			for i := range 20_000 {
				raw := fmt.Sprint("part ", (i*7+g)%len(last))
				p := decode(table, site, raw)
				if p.text != raw {
					t.Errorf("decoded %q, want %q", p.text, raw)
					return
				}
				last[(i*7+g)%len(last)] = p
				if str, shared := table.String(site, []byte(raw)); shared && str != raw {
					t.Errorf("string %q, want %q", str, raw)
					return
				}
				switch {
				case i%5000 == 0:
					runtime.GC()
				case i%7001 == 0 && g == 0:
					table.Reset()
				case i%3000 == 0:
					table.Stats()
				}
			}
		})
	}
	group.Wait()
}

// Two goroutines that decode the same bytes at the same time end with one part.
func TestTable_SecondToKeepGetsTheFirst_D2(t *testing.T) {
	table, site := NewTable(), new(Site)
	raw := []byte("part")
	table.Look(site, raw)
	_, _, one := table.Look(site, raw)
	_, _, two := table.Look(site, raw)
	a, b := &part{text: "part"}, &part{text: "part"}
	first := table.Keep(site, raw, Value{Ptr: unsafe.Pointer(a), Len: 1, Size: 32}, one)
	second := table.Keep(site, raw, Value{Ptr: unsafe.Pointer(b), Len: 1, Size: 32}, two)
	if (*part)(first.Ptr) != a || (*part)(second.Ptr) != a {
		t.Error("two goroutines have two parts, want the first")
	}
}

func TestSite_UniqueValuesAreLookedUpRarely(t *testing.T) {
	table, site := NewTable(), new(Site)
	for i := range 3 * window {
		table.Look(site, fmt.Appendf(nil, "unique %d", i))
	}
	before := table.Stats()
	for i := range 6400 {
		table.Look(site, fmt.Appendf(nil, "another %d", i))
	}
	if got := table.Stats().Misses - before.Misses; got > 6400/few {
		t.Errorf("%d of 6400 unique values are looked up, want at most one in %d", got, few)
	}
	// What begins to repeat is found again.
	for range 64 * windowOfSamples * 2 {
		decode(table, site, "the same")
	}
	if site.every.Load() != 0 {
		t.Error("values that repeat are still looked up rarely")
	}
}

func TestSite_LongCyclesOfValuesAreStillLookedUp(t *testing.T) {
	table, site := NewTable(), new(Site)
	for i := range 10_000 {
		table.Look(site, fmt.Appendf(nil, "owner %d", i%2000))
	}
	if site.every.Load() != 0 {
		t.Error("values of 2,000 owners in turn are looked up rarely")
	}
}

func BenchmarkTable(b *testing.B) {
	raw := bytes.Repeat([]byte("labels: "), 16)
	b.Run("found", func(b *testing.B) {
		table, site := NewTable(), new(Site)
		decode(table, site, string(raw))
		kept := decode(table, site, string(raw))
		b.ReportAllocs()
		for b.Loop() {
			if _, found, _ := table.Look(site, raw); !found {
				b.Fatal("not found")
			}
		}
		runtime.KeepAlive(kept)
	})
	b.Run("unique", func(b *testing.B) {
		table, site := NewTable(), new(Site)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			raw[0], raw[1], raw[2], raw[3] = byte(i), byte(i>>8), byte(i>>16), byte(i>>24)
			table.Look(site, raw)
		}
	})
}

// Lookups that count at the time of a judgement, by another window, may pass its end.
func TestSite_IsJudgedAgainIfTheEndWasPassed_D2(t *testing.T) {
	var s Site
	s.every.Store(few)
	s.looked.Store(windowOfSamples + 10)
	for range 2 * windowOfSamples {
		s.count(true)
	}
	if every := s.every.Load(); every != 0 {
		t.Errorf("one value in %d is looked up, want each: all of them repeat", every)
	}
}
