// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page says what was not repeated, and for what there was no time.
func TestReport_ThePageHasWhatTheTextHas(t *testing.T) {
	dir := t.TempDir()
	r := &Report{
		Test: "shop", Findings: []*Finding{{ID: "1", Plans: 3}, {ID: "2", Plans: 1, Repeated: 1, Tries: 2}}, Skipped: []string{"<skipped>"},
		Refused: []string{"<refused>"}, Untried: []string{"<untried>"},
	}
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "doctor.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 plans; it was not repeated", "1 plans; 1 of 2 repetitions show it again", "&lt;skipped&gt;", "&lt;refused&gt;", "&lt;untried&gt;"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}
