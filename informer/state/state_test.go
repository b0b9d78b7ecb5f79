// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// Metrics have a value for each state, so none may be missing.
func TestStates_AreAllThatAreDeclared(t *testing.T) {
	text, err := os.ReadFile("state.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`\w+ +State = "(\w+)"`).FindAllStringSubmatch(string(text), -1)
	for _, d := range declared {
		if !slices.Contains(All(), State(d[1])) {
			t.Errorf("All() lacks %s", d[1])
		}
	}
	if len(declared) != len(All()) {
		t.Errorf("%d states are declared, and All() has %d", len(declared), len(All()))
	}
}
