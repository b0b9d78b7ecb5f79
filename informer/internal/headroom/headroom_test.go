// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package headroom_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/headroom"
)

const MB = 1_000_000

func half() float64 { return 0.5 }

// begin enters in the background and returns whether it was admitted by now.
func begin(t *testing.T, c *headroom.Claim) (admitted func() bool, hold func() headroom.Hold) {
	var in atomic.Bool
	var mu sync.Mutex
	var last headroom.Hold
	go func() {
		if c.Enter(t.Context(), func(h headroom.Hold) { mu.Lock(); last = h; mu.Unlock() }) == nil {
			in.Store(true)
		}
	}()
	synctest.Wait()
	return func() bool { synctest.Wait(); return in.Load() }, func() headroom.Hold { mu.Lock(); defer mu.Unlock(); return last }
}

func refused(t *testing.T, err error, crowded bool) *headroom.NoRoomError {
	t.Helper()
	room, ok := errors.AsType[*headroom.NoRoomError](err)
	if !ok || room.Crowded != crowded {
		t.Fatalf("got %v, want no room, crowded %v", err, crowded)
	}
	return room
}

// Two lists that fit one after the other take turns.
func TestBudget_ListsTakeTurns_D6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Int64
		b := headroom.New(100*MB, held.Load)
		first, second := b.Claim(), b.Claim()
		for _, c := range []*headroom.Claim{first, second} {
			if admitted, _ := begin(t, c); !admitted() {
				t.Fatal("a list of unknown size waits although there is room")
			}
		}
		if err := first.Grow(1*MB, 60*MB, half); err != nil {
			t.Fatal(err)
		}
		room := refused(t, second.Grow(1*MB, 50*MB, half), true)
		if room.Needs != 50*MB || room.Held != 60*MB || room.Budget != 100*MB {
			t.Errorf("got %+v, want the numbers", room)
		}
		second.Done(false)
		admitted, hold := begin(t, second)
		if admitted() {
			t.Fatal("a list is read beside another with which it does not fit")
		}
		if h := hold(); h.NoRoom || !strings.Contains(h.Why, "50 MB") || !strings.Contains(h.Why, "other lists") {
			t.Errorf("it waits because of %+v", h)
		}
		held.Store(45 * MB) // less than was estimated
		first.Done(true)
		if !admitted() {
			t.Fatal("a list waits although the other is stored and it fits")
		}
		if err := second.Grow(50*MB, 0, half); err != nil {
			t.Errorf("within the budget: %v", err)
		}
		second.Done(true)
	})
}

// A list that does not fit by itself is read until that is certain, and then
// tried at a falling rate, or when there is room.
func TestBudget_ListThatDoesNotFitIsTriedAgain_D6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Int64
		held.Store(40 * MB)
		b := headroom.New(100*MB, held.Load)
		c := b.Claim()
		begin(t, c)
		if err := c.Grow(2*MB, 90*MB, half); err != nil {
			t.Fatalf("the estimate alone stops it: %v", err)
		}
		if err := c.Grow(59*MB, 80*MB, half); err != nil {
			t.Fatalf("it is within the budget: %v", err)
		}
		room := refused(t, c.Grow(61*MB, 90*MB, half), false)
		if room.Needs != 90*MB || room.Held != 40*MB || room.Least {
			t.Errorf("got %+v, want the numbers", room)
		}
		c.Done(false)
		for try := range 3 {
			admitted, hold := begin(t, c)
			if admitted() {
				t.Fatalf("try %d begins at once", try)
			}
			h := hold()
			if !h.NoRoom || !h.Until.After(time.Now()) || !strings.Contains(h.Why, "90 MB") {
				t.Errorf("try %d waits because of %+v", try, h)
			}
			pause := time.Until(h.Until)
			if least := 20 * time.Second << try; pause < least || pause > 40*time.Second<<try {
				t.Errorf("try %d waits for %s, want about %s", try, pause, least)
			}
			time.Sleep(pause)
			if !admitted() {
				t.Fatalf("try %d does not begin in time", try)
			}
			refused(t, c.Grow(1*MB, 90*MB, half), false) // its first page shows it
			c.Done(false)
		}
		admitted, _ := begin(t, c)
		held.Store(5 * MB)
		b.Look()
		if !admitted() {
			t.Fatal("it waits although there is room")
		}
		c.Done(true)
	})
}

func TestBudget_SmallestGoesFirst_D6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := headroom.New(100*MB, func() int64 { return 0 })
		busy := b.Claim()
		begin(t, busy)
		if err := busy.Grow(90*MB, 90*MB, half); err != nil {
			t.Fatal(err)
		}
		var claims []*headroom.Claim
		var admitted []func() bool
		for _, need := range []int64{80 * MB, 30 * MB} {
			c := b.Claim()
			begin(t, c)
			refused(t, c.Grow(1*MB, need, half), true)
			c.Done(false)
			in, _ := begin(t, c)
			claims, admitted = append(claims, c), append(admitted, in)
		}
		busy.Done(false)
		if admitted[0]() || !admitted[1]() {
			t.Fatalf("80 MB: %v, 30 MB: %v; want the smaller one", admitted[0](), admitted[1]())
		}
		claims[1].Done(true)
		if !admitted[0]() {
			t.Fatal("the other one waits forever")
		}
		claims[0].Done(true)
	})
}

// Whatever lists do, no more than the budget is reserved, and each list ends
// up read or refused.
func TestBudget_NeverGivesMoreThanThereIs_D6(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			var held, read atomic.Int64 // stored, and being read
			b := headroom.New(100*MB, held.Load)
			var lists sync.WaitGroup
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			fit := atomic.Int64{}
			for range 8 {
				size, known := 1*MB+r.Int64N(60*MB), r.IntN(2) == 0
				lists.Go(func() {
					c := b.Claim()
					for c.Enter(ctx, func(headroom.Hold) {}) == nil {
						var got int64
						var err error
						for err == nil && got < size {
							part := min(size-got, MB)
							got += part
							if now := held.Load() + read.Add(part); now > 100*MB+8*MB {
								t.Errorf("seed %d: %d bytes are held and read", seed, now)
							}
							estimate := int64(0)
							if known {
								estimate = size
							}
							err = c.Grow(got, estimate, half)
							time.Sleep(time.Millisecond)
						}
						read.Add(-got)
						if err == nil {
							held.Add(size)
							fit.Add(1)
						}
						c.Done(err == nil)
						if err == nil {
							return
						}
					}
				})
			}
			lists.Wait()
			if fit.Load() == 0 {
				t.Errorf("seed %d: no list was read", seed)
			}
			if n := fit.Load(); n < 8 && held.Load() < 40*MB {
				t.Errorf("seed %d: %d lists wait although %d bytes are free", seed, 8-n, 100*MB-held.Load())
			}
		})
	}
}

func TestBudget_NoneHasNoBound(t *testing.T) {
	for _, limit := range []int64{0, -1} {
		c := headroom.New(limit, nil).Claim()
		if err := c.Enter(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if err := c.Grow(math.MaxInt64, 0, half); err != nil {
			t.Error(err)
		}
		c.Done(true)
	}
}

// The default is found where the kernel and the runtime say it.
func TestDefault_FromGoLimitOrCgroup_D6(t *testing.T) {
	const none = math.MaxInt64
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	machine := file("MemTotal:       16384000 kB\nMemFree: 1 kB\n")
	v2 := fstest.MapFS{
		"proc/self/cgroup": file("0::/kubepods/pod1/c1\n"), "proc/meminfo": machine,
		"sys/fs/cgroup/kubepods/memory.max": file("2000000000\n"), "sys/fs/cgroup/kubepods/pod1/memory.max": file("1000000000\n"),
		"sys/fs/cgroup/kubepods/pod1/c1/memory.max": file("max\n"),
	}
	for name, c := range map[string]struct {
		limit int64
		root  fstest.MapFS
		want  int64
	}{
		"GOMEMLIMIT":                        {1000 * MB, v2, 800 * MB},
		"GOMEMLIMIT above the cgroup's":     {4000 * MB, v2, 500 * MB},
		"cgroup v2, the least above":        {none, v2, 500 * MB},
		"cgroup v2 in a container":          {none, fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "proc/meminfo": machine, "sys/fs/cgroup/memory.max": file("512000000")}, 256 * MB},
		"cgroup v2 with the host's path":    {none, fstest.MapFS{"proc/self/cgroup": file("0::/kubepods/x\n"), "proc/meminfo": machine, "sys/fs/cgroup/memory.max": file("512000000")}, 256 * MB},
		"cgroup v2 without a limit":         {none, fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "proc/meminfo": machine, "sys/fs/cgroup/memory.max": file("max\n")}, 0},
		"cgroup v1":                         {none, fstest.MapFS{"proc/self/cgroup": file("9:name=systemd:/\n5:cpu,memory:/a\n"), "proc/meminfo": machine, "sys/fs/cgroup/memory/a/memory.limit_in_bytes": file("100000000\n")}, 50 * MB},
		"cgroup v1 without a limit":         {none, fstest.MapFS{"proc/self/cgroup": file("5:memory:/a\n"), "proc/meminfo": machine, "sys/fs/cgroup/memory/a/memory.limit_in_bytes": file("9223372036854771712\n")}, 0},
		"a limit above the machine's":       {none, fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "proc/meminfo": machine, "sys/fs/cgroup/memory.max": file("20000000000")}, 0},
		"no cgroups":                        {none, fstest.MapFS{}, 0},
		"files that are not as they should": {none, fstest.MapFS{"proc/self/cgroup": file("x\n0::/..\n"), "proc/meminfo": file("MemTotal: x\n"), "sys/fs/cgroup/memory.max": file("-5")}, 0},
	} {
		if got := headroom.Default(c.limit, c.root); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
