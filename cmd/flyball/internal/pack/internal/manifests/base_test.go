// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// A file is merged as a JSON merge patch: a null removes a field, also where the object around
// it is new.
func TestMerge_IsAMergePatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "merge.yaml")
	text := "# comment\nname: b\nold: null\nmaintainers:\n- name: c\nannotations:\n  a: x\n  b: null\nspec:\n  d: 2\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	into := Object{"name": "a", "old": "x", "stays": "y", "spec": map[string]any{"c": json.Number("9007199254740993")}}
	if err := Merge(into, file); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(into)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"annotations":{"a":"x"},"maintainers":[{"name":"c"}],"name":"b","spec":{"c":9007199254740993,"d":2},"stays":"y"}`
	if string(got) != want {
		t.Errorf("the merged object is\n%s, want\n%s", got, want)
	}
	if err := Merge(into, ""); err != nil {
		t.Errorf("without a file: %v", err)
	}
}
