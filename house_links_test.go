// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package flyball_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// A link of a page leads to a file, and to a heading in it if it names one. The README
// links every page of docs.
func TestHouse_LinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced := regexp.MustCompile("(?ms)^ *```.*?^ *```")
	linked := map[string]bool{} // from the README
	err := filepath.WalkDir(".", func(page string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && ofTheSite[filepath.ToSlash(page)] {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(page) != ".md" {
			return nil
		}
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllSubmatch(fenced.ReplaceAll(text, nil), -1) {
			to := string(m[1])
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			file, heading, _ := strings.Cut(to, "#")
			if file == "" {
				file = page
			} else {
				file = filepath.Join(filepath.Dir(page), file)
			}
			if page == "README.md" {
				linked[file] = true
			}
			target, err := os.Stat(file)
			if err != nil {
				t.Errorf("%s: the link %s leads nowhere: %v", page, to, err)
				continue
			}
			if heading != "" && (target.IsDir() || !hasHeading(t, file, heading)) {
				t.Errorf("%s: the link %s names a heading that %s does not have", page, to, file)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if !linked[page] {
			t.Errorf("%s: the README does not say what it is for", page)
		}
	}
}

// hasHeading reports whether the page has a heading with this anchor.
func hasHeading(t *testing.T, page, anchor string) bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		title, isHeading := strings.CutPrefix(strings.TrimLeft(string(line), "#"), " ")
		if isHeading && line[0] == '#' && anchorOf(title) == anchor {
			return true
		}
	}
	return false
}

// anchorOf returns the anchor that GitHub generates for a heading.
func anchorOf(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(title))
}
