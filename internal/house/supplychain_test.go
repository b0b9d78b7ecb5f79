// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// docs/dependencies.md has a reason for each module that go.mod requires directly, and for
// no other.
func TestHouse_EachDirectDependencyHasItsReason(t *testing.T) {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal([]byte(goCommand(t, "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\|$").FindAllStringSubmatch(read(t, "docs/dependencies.md"), -1) {
		reasons[row[1]] = row[3]
	}
	direct := 0
	for _, r := range mod.Require {
		if r.Indirect {
			continue
		}
		direct++
		if len(strings.Fields(reasons[r.Path])) < 3 {
			t.Errorf("docs/dependencies.md has no reason for %s, which go.mod requires", r.Path)
		}
		delete(reasons, r.Path)
	}
	if direct == 0 {
		t.Fatal("go.mod requires nothing directly; this test looks at nothing")
	}
	for path := range reasons {
		t.Errorf("docs/dependencies.md has a reason for %s, which go.mod does not require directly", path)
	}
}

// Each action of a workflow is pinned to a commit or a full version, and by default a
// workflow has only the right to read.
func TestHouse_ActionsArePinned(t *testing.T) {
	uses := regexp.MustCompile(`(?m)^[\s-]*uses:\s*(\S+)`)
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@([0-9a-f]{40}|v\d+\.\d+\.\d+)$`)
	written := glob(t, "examples/*/.github/workflows/*") // also of flyball new
	for _, path := range append(glob(t, ".github/workflows/*"), written...) {
		text := read(t, path)
		for _, match := range uses.FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(match[1]) {
				t.Errorf("%s uses %s; pin it by a commit or a full version", path, match[1])
			}
		}
		if !strings.Contains(text, "\npermissions:\n  contents: read\n") {
			t.Errorf("%s does not begin with the right to read alone", path)
		}
	}
}
