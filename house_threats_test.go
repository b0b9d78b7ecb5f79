// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package flyball_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each row of docs/threats.md names its tests, and they exist.
func TestHouse_EachThreatHasItsTest(t *testing.T) {
	text, err := os.ReadFile("docs/threats.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testFunctions(t)
	name := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Threat |") {
			continue
		}
		if rows++; len(cells) != 3 {
			t.Errorf("docs/threats.md: the row %q has %d cells, want threat, answer and test", line, len(cells))
			continue
		}
		named := name.FindAllStringSubmatch(cells[2], -1)
		if len(named) == 0 {
			t.Errorf("docs/threats.md: the row %q names no test", line)
		}
		for _, match := range named {
			if !slices.Contains(tests, match[1]) {
				t.Errorf("docs/threats.md names %s, which is no test", match[1])
			}
		}
	}
	if rows == 0 {
		t.Error("docs/threats.md has no rows")
	}
}
