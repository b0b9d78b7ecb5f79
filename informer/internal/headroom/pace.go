// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package headroom

import (
	"io/fs"
	"math"
	"runtime/debug"
)

// ofPace is the share of a cgroup's limit from which the collector works more. It is not a share
// that programs choose, so that Default can tell the result from theirs.
const ofPace = 0.91

// paced returns the limit for the collector in a cgroup with a limit.
func paced(limit int64) int64 { return int64(ofPace * float64(limit)) }

// pacer makes the collector of garbage work more before the process takes the memory limit of its
// cgroup, of which Go does not know. The zero pacer does nothing. It is used by one goroutine.
type pacer struct{ set int64 }

// update follows the limit of the cgroup, unless the program or GOMEMLIMIT has set one.
func (p *pacer) update(root fs.FS) {
	now, limit := debug.SetMemoryLimit(-1), paced(cgroupLimit(root))
	if limit > 0 && (now == math.MaxInt64 || now == p.set) {
		debug.SetMemoryLimit(limit)
		p.set = limit
	}
}

// end removes the limit, unless the program has set another meanwhile.
func (p *pacer) end() {
	if p.set != 0 && debug.SetMemoryLimit(-1) == p.set {
		debug.SetMemoryLimit(math.MaxInt64)
	}
}
