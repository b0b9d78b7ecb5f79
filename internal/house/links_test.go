// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
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
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, page), ""), -1) {
			to := m[1]
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
	for _, page := range glob(t, "docs/*.md") {
		if !linked[page] {
			t.Errorf("%s: the README does not say what it is for", page)
		}
	}
}

// What ARCHITECTURE.md and the README name as a file, is one.
func TestHouse_TheDrawingNamesFilesThatExist(t *testing.T) {
	named := regexp.MustCompile(`[a-z]+(?:/[a-z_]+)+\.go\b`)
	for _, doc := range []string{"ARCHITECTURE.md", "README.md"} {
		for _, file := range named.FindAllString(read(t, doc), -1) {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s names %s: %v; change the drawing with the code", doc, file, err)
			}
		}
	}
}

// hasHeading reports whether the page has a heading with this anchor.
func hasHeading(t *testing.T, page, anchor string) bool {
	t.Helper()
	for line := range strings.Lines(read(t, page)) {
		title, isHeading := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
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
