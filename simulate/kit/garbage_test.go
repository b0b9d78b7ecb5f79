// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"math"
	"os"
	"runtime/debug"
	"testing"
)

// While seeds run the memory for garbage is limited, and not after them.
func TestCollectRarely_LimitsMemory(t *testing.T) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		t.Skip("GOGC or GOMEMLIMIT is set")
	}
	t.Run("seeds", func(t *testing.T) {
		collectRarely(t)
		if limit := debug.SetMemoryLimit(-1); limit != memoryAtMost {
			t.Errorf("the limit is %d bytes while seeds run, want %d", limit, memoryAtMost)
		}
	})
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		t.Errorf("the limit is %d bytes after the seeds, want none", limit)
	}
}
