// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package headroom

import (
	"io/fs"
	"runtime/debug"
	"sync"
)

// ofPace is the share of a cgroup's limit from which the collector works more.
const ofPace = 0.9

// pace is the process's memory limit for the collector, which Pace sets.
var pace struct {
	sync.Mutex
	users  int
	before int64 // GOMEMLIMIT, or what the program has set
	set    int64 // 0: before stays
}

// Pace makes the collector of garbage work more before the process takes the memory limit of its
// cgroup, until stop is called as often: Go knows only GOMEMLIMIT, which stays if it is lower. Call
// it again when the limit may have changed. It does nothing where there is no limit.
func Pace(root fs.FS) (stop func()) {
	pace.Lock()
	defer pace.Unlock()
	if pace.users++; pace.users == 1 {
		pace.before = debug.SetMemoryLimit(-1)
	}
	limit := int64(ofPace * float64(cgroupLimit(root)))
	if limit > 0 && limit < pace.before && debug.SetMemoryLimit(-1) == pacedLocked() {
		debug.SetMemoryLimit(limit)
		pace.set = limit
	}
	return sync.OnceFunc(unpace)
}

func unpace() {
	pace.Lock()
	defer pace.Unlock()
	if pace.users--; pace.users == 0 && pace.set != 0 {
		if debug.SetMemoryLimit(-1) == pace.set { // else the program has set another
			debug.SetMemoryLimit(pace.before)
		}
		pace.set = 0
	}
}

// pacedLocked returns the limit that is in force, if nobody else has set one.
func pacedLocked() int64 {
	if pace.set != 0 {
		return pace.set
	}
	return pace.before
}

// GoLimit returns the process's memory limit for the collector without that of Pace.
func GoLimit() int64 {
	pace.Lock()
	defer pace.Unlock()
	if now := debug.SetMemoryLimit(-1); pace.set == 0 || now != pace.set {
		return now
	}
	return pace.before
}
