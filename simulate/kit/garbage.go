// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"math"
	"runtime/debug"
	"testing"
)

const (
	usualPercent, rarePercent = 100, 800 // as values of GOGC
	// memoryAtMost is the memory from which garbage is collected more often. On a busy
	// machine a collection takes a second, in which runs allocate more than they keep;
	// all of that counts as live, and the next collection waits until there is nine
	// times as much.
	memoryAtMost = 1 << 30
)

// collectRarely makes the garbage collector run less often until tb has ended, unless
// GOGC is set: a run allocates much and keeps little. It limits the memory for that,
// unless GOMEMLIMIT does.
func collectRarely(tb testing.TB) {
	if was := debug.SetGCPercent(rarePercent); was != usualPercent {
		debug.SetGCPercent(was)
		return
	}
	tb.Cleanup(func() { debug.SetGCPercent(usualPercent) })
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memoryAtMost)
		tb.Cleanup(func() { debug.SetMemoryLimit(math.MaxInt64) })
	}
}
