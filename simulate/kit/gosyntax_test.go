// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"
	"testing"
)

// Each fault can be written as Go.
func TestOp_GoStringHasEachFault_K9(t *testing.T) {
	for verb := range verbs {
		if text := (Op{Verb: verb}).GoString(); strings.Contains(text, "kit.Op{") {
			t.Errorf("%q is written %s, want the function that makes it", verb, text)
		}
	}
}
