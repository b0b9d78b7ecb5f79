// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package flyball_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ofTheSite are directories that `make site` writes; the rules are not about what is in them.
var ofTheSite = map[string]bool{"hack/site/node_modules": true, "hack/site/generated": true, "hack/site/dist": true}

// siteSection is a section of the sidebar: pages, and each page of a directory.
type siteSection struct {
	Text  string
	Pages []struct {
		File string
	}
	Directory string
}

// The sidebar of the site has each page of docs once, and no file that is not there.
func TestHouse_TheSiteListsEachPageOnce(t *testing.T) {
	var sections []siteSection
	text, err := os.ReadFile("hack/site/sidebar.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &sections); err != nil {
		t.Fatalf("hack/site/sidebar.json: %v", err)
	}
	listed := map[string]string{} // file: section
	for _, section := range sections {
		for _, page := range section.Pages {
			if in, twice := listed[page.File]; twice {
				t.Errorf("hack/site/sidebar.json lists %s under %q and under %q", page.File, in, section.Text)
			}
			listed[page.File] = section.Text
			if strings.HasPrefix(page.File, "hack/site/generated/") {
				continue // the build fails without it
			}
			if _, err := os.Stat(page.File); err != nil {
				t.Errorf("hack/site/sidebar.json lists %s: %v", page.File, err)
			}
		}
	}
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("there are no pages (%v); this test looks at nothing", err)
	}
	for _, page := range pages {
		if _, ok := listed[filepath.ToSlash(page)]; !ok {
			t.Errorf("hack/site/sidebar.json does not list %s: add it to the section where a reader looks for it", page)
		}
	}
	directories, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range directories {
		whole := slices.ContainsFunc(sections, func(s siteSection) bool {
			return s.Directory == filepath.ToSlash(filepath.Dir(page))
		})
		if _, ok := listed[filepath.ToSlash(page)]; !ok && !whole {
			t.Errorf("hack/site/sidebar.json lists neither %s nor its directory", page)
		}
	}
}
