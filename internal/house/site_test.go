// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

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
	if err := json.Unmarshal([]byte(read(t, "hack/site/sidebar.json")), &sections); err != nil {
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
	for _, page := range append(glob(t, "docs/*.md"), glob(t, "docs/*/*.md")...) {
		whole := slices.ContainsFunc(sections, func(s siteSection) bool { return s.Directory == path.Dir(page) })
		if listed[page] == "" && !whole {
			t.Errorf("hack/site/sidebar.json does not list %s: add it to the section where a reader looks for it", page)
		}
	}
}
