// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package headroom

import (
	"fmt"
	"io/fs"
	"math"
	"runtime/debug"
	"slices"
	"testing"
	"testing/fstest"
)

func cgroupOf(bytes int64) fs.FS {
	return fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/")}, "sys/fs/cgroup/memory.max": {Data: fmt.Appendln(nil, bytes)}}
}

// The collector keeps to the limit of the cgroup, and to none that the program has not set.
func TestPacer_KeepsToTheCgroup_D6(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	limit := func() int64 { return debug.SetMemoryLimit(-1) }
	var first, second pacer
	for _, bytes := range []int64{1 << 40, 1 << 41} {
		first.update(cgroupOf(bytes))
		second.update(cgroupOf(bytes))
		if limit() != paced(bytes) || Default(limit(), cgroupOf(bytes)) != bytes/2 {
			t.Errorf("the limit is %d and the budget %d, want those of a group of %d", limit(), Default(limit(), cgroupOf(bytes)), bytes)
		}
	}
	first.end()
	if limit() != math.MaxInt64 {
		t.Errorf("the limit is %d at the end, want none", limit())
	}
	second.update(cgroupOf(1 << 40))
	if limit() != paced(1<<40) {
		t.Errorf("the limit is %d, want that of the factory that is left", limit())
	}
	debug.SetMemoryLimit(1 << 39)
	second.update(cgroupOf(1 << 41))
	second.end()
	if limit() != 1<<39 {
		t.Errorf("the limit is %d, want the program's", limit())
	}
}

// What takes most memory per read is packed first, and nothing that does not pay.
func TestRelief_CostliestKindFirst_D6(t *testing.T) {
	var packed []string
	kinds := []Packable{
		{ID: "read", Heap: 30 << 20, Objects: 100, Reads: 1000},
		{ID: "unread", Heap: 10 << 20, Objects: 100},
		{ID: "small", Heap: 1 << 20, Objects: 100},
		{ID: "listed", Objects: 0},
	}
	r := &Relief{Budget: New(1<<20, func() int64 { return 0 }), Sweep: func() {}}
	r.Kinds = func() (left []Packable) {
		for _, k := range kinds {
			k.Pack = func(string) bool { packed = append(packed, k.ID.(string)); return true }
			if !slices.Contains(packed, k.ID.(string)) {
				left = append(left, k)
			}
		}
		return left
	}
	for r.Pack("listed", 20<<20) {
	}
	if want := "[listed unread read]"; fmt.Sprint(packed) != want {
		t.Errorf("packed are %v, want %s", packed, want)
	}
}
