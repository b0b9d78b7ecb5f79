// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package headroom

import (
	"io/fs"
	"math"
	"runtime/debug"
	"runtime/metrics"
)

// Shares of a cgroup's limit from which the collector of garbage works more: the least leaves room
// for what Go does not count, and the most is for a process of which more is live.
const leastPace, mostPace = 0.7, 0.91

// paceMark is in the last bits of each limit that a pacer sets, and of hardly another.
const paceBits, paceMark = 1<<12 - 1, 2731

// isPaced reports whether limit is one that a pacer has set, not the program.
func isPaced(limit int64) bool { return limit&paceBits == paceMark }

// paced returns the limit for the collector in a cgroup with a limit; 0: there is none. If live
// bytes of the heap are in use, the heap grows to twice as much by default.
func paced(limit, live int64) int64 {
	if limit == 0 {
		return 0
	}
	return min(max(int64(leastPace*float64(limit)), 2*live), int64(mostPace*float64(limit)))&^paceBits | paceMark
}

// live returns how much of the heap the last collection has left.
func live() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// pacer makes the collector of garbage work more before the process takes the memory limit of its
// cgroup, of which Go does not know. The zero pacer does nothing. It is used by one goroutine.
type pacer struct{ sets bool }

// update follows the limit of the cgroup, unless the program or GOMEMLIMIT has set one.
func (p *pacer) update(root fs.FS) {
	now, limit := debug.SetMemoryLimit(-1), paced(cgroupLimit(root), live())
	switch {
	case limit > 0 && (now == math.MaxInt64 || isPaced(now)):
		debug.SetMemoryLimit(limit)
		p.sets = true
	case limit == 0: // the cgroup has none any more
		p.end()
	}
}

// end removes the limit, unless the program has set another meanwhile.
func (p *pacer) end() {
	if p.sets && isPaced(debug.SetMemoryLimit(-1)) {
		debug.SetMemoryLimit(math.MaxInt64)
	}
}
