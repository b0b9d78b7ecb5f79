// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The pages that say which test shows a behaviour name tests and specs that exist.
func TestHouse_PagesNameTestsThatExist(t *testing.T) {
	tests := testFunctions(t)
	for _, page := range []string{"docs/bad-input.md", "docs/threats.md"} {
		for _, name := range regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(read(t, page), -1) {
			if !slices.Contains(tests, name) {
				t.Errorf("%s names %s, which is not a test", page, name)
			}
		}
	}
	text := regexp.MustCompile("`[^`]*`").ReplaceAllString(read(t, "docs/bad-input.md"), "") // messages have stars of their own
	for _, match := range regexp.MustCompile(`\*([^*]+)\*`).FindAllStringSubmatch(text, -1) {
		name := strings.Join(strings.Fields(match[1]), " ")
		if !slices.ContainsFunc(sources(t), func(f sourceFile) bool { return f.isTest() && strings.Contains(string(f.text), name) }) {
			t.Errorf("docs/bad-input.md names the spec %q, which no test file has", name)
		}
	}
}

func TestHouse_EachThreatHasItsTest(t *testing.T) {
	named := regexp.MustCompile("`(Test|Fuzz)[A-Z]\\w+`")
	rows := 0
	for line := range strings.Lines(read(t, "docs/threats.md")) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Threat |") {
			continue
		}
		rows++
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || !named.MatchString(cells[2]) {
			t.Errorf("docs/threats.md: want threat, answer and a test in three cells: %s", line)
		}
	}
	if rows == 0 {
		t.Error("docs/threats.md has no rows")
	}
}
