// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"runtime/debug"
	"testing"
)

const usualPercent, rarePercent = 100, 800 // as GOGC has them

// collectRarely has the garbage collector run more rarely until tb has ended, unless
// somebody has said how often: a run makes much garbage and keeps little.
func collectRarely(tb testing.TB) {
	if was := debug.SetGCPercent(rarePercent); was != usualPercent {
		debug.SetGCPercent(was)
		return
	}
	tb.Cleanup(func() { debug.SetGCPercent(usualPercent) })
}
