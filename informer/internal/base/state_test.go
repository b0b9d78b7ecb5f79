// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

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
	declared := regexp.MustCompile(`State\w+ State = "(\w+)"`).FindAllStringSubmatch(string(text), -1)
	for _, d := range declared {
		if !slices.Contains(States(), State(d[1])) {
			t.Errorf("States() lacks %s", d[1])
		}
	}
	if len(declared) != len(States()) {
		t.Errorf("%d states are declared, and States() has %d", len(declared), len(States()))
	}
}
