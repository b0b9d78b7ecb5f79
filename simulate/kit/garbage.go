// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"runtime/debug"
	"testing"
)

const usualPercent, rarePercent = 100, 800 // as values of GOGC

// collectRarely makes the garbage collector run less often until tb has ended, unless
// GOGC is set: a run allocates much and keeps little.
func collectRarely(tb testing.TB) {
	if was := debug.SetGCPercent(rarePercent); was != usualPercent {
		debug.SetGCPercent(was)
		return
	}
	tb.Cleanup(func() { debug.SetGCPercent(usualPercent) })
}
