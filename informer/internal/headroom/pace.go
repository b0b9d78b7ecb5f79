// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package headroom

import (
	"io/fs"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Shares of a cgroup's limit from which the collector of garbage works more: the least leaves room
// for what Go does not count, and the most is for a process of which more is live.
const leastPace, mostPace = 0.7, 0.91

// paced returns the limit for the collector in a cgroup with a limit, if live bytes of the heap
// are in use.
func paced(limit, live int64) int64 {
	return min(max(int64(leastPace*float64(limit)), live+live/2), int64(mostPace*float64(limit)))
}

// live returns how much of the heap the last collection has left.
func live() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}

// pacing has the limit for the collector that the pacers of the process have set; 0: none.
var pacing struct {
	sync.Mutex
	set int64
}

// isPaced reports whether limit is one that a pacer has set.
func isPaced(limit int64) bool {
	pacing.Lock()
	defer pacing.Unlock()
	return limit == pacing.set
}

// pacer makes the collector of garbage work more before the process takes the memory limit of its
// cgroup, of which Go does not know. The zero pacer does nothing. It is used by one goroutine.
type pacer struct{ sets bool }

// update follows the limit of the cgroup, unless the program or GOMEMLIMIT has set one.
func (p *pacer) update(root fs.FS) {
	pacing.Lock()
	defer pacing.Unlock()
	now, limit := debug.SetMemoryLimit(-1), paced(cgroupLimit(root), live())
	if limit > 0 && (now == math.MaxInt64 || now == pacing.set) {
		debug.SetMemoryLimit(limit)
		p.sets, pacing.set = true, limit
	}
}

// end removes the limit, unless the program has set another meanwhile.
func (p *pacer) end() {
	pacing.Lock()
	defer pacing.Unlock()
	if p.sets && debug.SetMemoryLimit(-1) == pacing.set {
		debug.SetMemoryLimit(math.MaxInt64)
		pacing.set = 0
	}
}
