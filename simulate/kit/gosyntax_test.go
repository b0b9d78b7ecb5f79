// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"
	"testing"
)

// Each fault has a Go syntax.
func TestOp_GoStringHasEachFault_K9(t *testing.T) {
	for verb := range subjects {
		if text := (Op{Verb: verb}).GoString(); strings.Contains(text, "kit.Op{") {
			t.Errorf("%q is written %s, want the function that makes it", verb, text)
		}
	}
}

func TestFaults_EachHasASubjectAndADeed(t *testing.T) {
	for verb := range subjects {
		if deeds[verb] == nil {
			t.Errorf("%s happens to something, but nothing is done", verb)
		}
	}
	for verb := range deeds {
		if _, ok := subjects[verb]; !ok {
			t.Errorf("%s is not said to happen to anything", verb)
		}
	}
}
