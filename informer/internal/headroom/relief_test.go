// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package headroom

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
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
		if limit() != paced(bytes, 0) || Default(limit(), cgroupOf(bytes)) != bytes/2 {
			t.Errorf("the limit is %d and the budget %d, want those of a group of %d", limit(), Default(limit(), cgroupOf(bytes)), bytes)
		}
	}
	first.end()
	if limit() != math.MaxInt64 {
		t.Errorf("the limit is %d at the end, want none", limit())
	}
	second.update(cgroupOf(1 << 40))
	if limit() != paced(1<<40, 0) {
		t.Errorf("the limit is %d, want that of the factory that is left", limit())
	}
	debug.SetMemoryLimit(1 << 39)
	second.update(cgroupOf(1 << 41))
	second.end()
	if limit() != 1<<39 {
		t.Errorf("the limit is %d, want the program's", limit())
	}
}

// The collector leaves room in the cgroup while little is live, and works no more than it must when
// much is.
func TestPaced_GrowsWithWhatIsLive_D6(t *testing.T) {
	for live, want := range map[int64]int64{0: 700, 350: 700, 400: 800, 900: 910} {
		got := paced(1000<<20, live<<20)
		if (got+1<<19)>>20 != want || !isPaced(got) || isPaced(got+1) {
			t.Errorf("with %d of 1000 live the collector works more from %d on, want %d", live, got>>20, want)
		}
	}
}

// A limit of the process that appears, falls or grows while it runs is the budget's: what does not
// fit any more is packed, and what fits is listed.
func TestRelief_FollowsTheLimitOfTheProcess_D6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := debug.SetMemoryLimit(-1)
		defer debug.SetMemoryLimit(before)
		const mb = 1 << 20
		var limit, held atomic.Int64
		held.Store(40 * mb)
		b := New(None, held.Load)
		var packed atomic.Bool
		pack := Packable{ID: "kind", Heap: 40 * mb, Objects: 100, Pack: func(string) bool {
			held.Store(8 * mb)
			packed.Store(true)
			return true
		}}
		r := &Relief{Budget: b, Limit: limit.Load, Sweep: func() {}, Kinds: func() []Packable {
			if packed.Load() {
				return nil
			}
			return []Packable{pack}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		time.Sleep(time.Minute)
		if packed.Load() || b.Limit() != 0 {
			t.Errorf("without a limit the budget is %d, and it is packed: %v", b.Limit(), packed.Load())
		}
		limit.Store(50 * mb)
		time.Sleep(relieveEvery + time.Second)
		if packed.Load() || b.Limit() != 50*mb {
			t.Errorf("below the limit the budget is %d, and it is packed: %v", b.Limit(), packed.Load())
		}
		limit.Store(30 * mb)
		time.Sleep(relieveEvery + time.Second)
		if !packed.Load() || b.Exceeded() {
			t.Errorf("above a limit that fell it is packed: %v, and too large: %v", packed.Load(), b.Exceeded())
		}
		list := b.Claim()
		for range 2 { // the second try shows what the list needs
			if err := list.Enter(ctx, func(Hold) {}); err != nil {
				t.Fatal(err)
			}
			if err := list.Grow(25*mb, 0, func() float64 { return 0 }); err == nil {
				t.Error("a list takes more than there is")
			}
			list.Done(false)
		}
		admitted := make(chan error, 1)
		go func() { admitted <- list.Enter(ctx, func(Hold) {}) }()
		limit.Store(100 * mb)
		time.Sleep(relieveEvery + time.Second)
		synctest.Wait()
		select {
		case err := <-admitted:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("a list waits although the limit has grown")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
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
	if r.Pack(nil, 0) {
		t.Error("a small kind is packed although no list needs the memory")
	}
	if !r.Pack("small", 1<<20) || !slices.Contains(packed, "small") {
		t.Error("a list of a small kind is refused, and the kind is not packed")
	}
}
