// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package flyball_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"testing"
)

// What docs/bad-input.md says is shown by tests and specs that exist.
func TestHouse_BadInputIsShownByTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("docs/bad-input.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testFunctions(t)
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1) {
		if !slices.Contains(tests, name) {
			t.Errorf("docs/bad-input.md names %s, which is no test", name)
		}
	}
	text = regexp.MustCompile("`[^`]*`").ReplaceAll(text, nil) // messages have stars of their own
	for _, match := range regexp.MustCompile(`(?s)\*([^*]+)\*`).FindAllSubmatch(text, -1) {
		name := bytes.Join(bytes.Fields(match[1]), []byte(" "))
		if !slices.ContainsFunc(sources(t), func(f sourceFile) bool { return f.isTest() && bytes.Contains(f.text, name) }) {
			t.Errorf("docs/bad-input.md names the spec %q, which no test file has", name)
		}
	}
}
