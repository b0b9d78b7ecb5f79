// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import "testing"

// Generated names are not compared, even if one of them is the same in two walks.
func TestView_GeneratedNamesAreComparedByTheirPrefix(t *testing.T) {
	runWith := func(names ...string) *trial {
		all := objects{}
		for _, name := range names {
			all[ref{"Pod", "default/" + name}] = map[string]any{"metadata": map[string]any{"name": name, "generateName": "web-"}}
		}
		return &trial{last: all}
	}
	fresh, lowered := runWith("web-aaaaa"), runWith("web-bbbbb")
	lowered.changes = []change{{Verb: "created", Of: ref{"Pod", "default/web-aaaaa"}}}
	if found := learn([]*trial{fresh, lowered}).unlike(fresh.last, lowered.last); len(found) > 0 {
		t.Errorf("one Pod is there in each, and they differ: %v", found)
	}
	if found := learn([]*trial{fresh, lowered}).unlike(fresh.last, runWith("web-aaaaa", "web-bbbbb").last); len(found) != 1 || found[0].extra != 1 {
		t.Errorf("two Pods in place of one: %v", found)
	}
	// The Pods of a StatefulSet have a generateName too.
	first, second := runWith("web-0", "web-1"), runWith("web-0", "web-1")
	if found := learn([]*trial{first, second}).unlike(first.last, runWith("web-0").last); len(found) != 1 || found[0].of.Key != "default/web-1" {
		t.Errorf("the second Pod of a StatefulSet is missing: %v", found)
	}
}
