// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"
)

func TestFragments_AreBounded_S31(t *testing.T) {
	known := &Fragments{atMost: 100_000}
	for i := range 5000 {
		value := map[string]any{"text": strings.Repeat(string(rune('a'+i%26)), 200), "n": int64(i)}
		for range 2 { // cached the second time
			open := known.TryOpen()
			w := JSONWriter{Known: open}
			if err := w.value(value); err != nil {
				t.Fatal(err)
			}
			open.Close()
		}
	}
	size := 0
	for _, all := range []map[fragmentKey]fragment{known.mu.young, known.mu.old} {
		for _, f := range all {
			size += len(f.text)
		}
	}
	if size == 0 || size > 2*known.atMost {
		t.Errorf("S31: %d bytes are kept, want some, and at most %d", size, 2*known.atMost)
	}
	if open := known.TryOpen(); known.TryOpen() != nil {
		t.Error("S31: two encoders have the fragments at once")
	} else {
		open.Close()
	}
}
