// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Diff returns the differences between got and want, one per line: the step, the path in
// its answer, the value got and the value wanted. It is empty if there are none.
func Diff(got, want []Entry) (lines []string) {
	a, b := plain(got), plain(want)
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			lines = append(lines, fmt.Sprintf("step %d: %s: not there", i+1, want[i].Do))
		case i >= len(b):
			lines = append(lines, fmt.Sprintf("step %d: %s: one too many", i+1, got[i].Do))
		default:
			for _, d := range differences("", a[i], b[i]) {
				lines = append(lines, fmt.Sprintf("step %d: %s: %s", i+1, got[i].Do, d))
			}
		}
	}
	return lines
}

// differences returns the differences of two plain values at path.
func differences(path string, got, want any) (lines []string) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(w)
		maps.Copy(keys, g)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			lines = append(lines, differences(path+"."+key, orAbsent(g, key), orAbsent(w, key))...)
		}
		return lines
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		for i := range w {
			lines = append(lines, differences(fmt.Sprintf("%s[%d]", path, i), g[i], w[i])...)
		}
		return lines
	}
	if !reflect.DeepEqual(got, want) {
		lines = append(lines, fmt.Sprintf("%s: got %s, want %s", path, short(got), short(want)))
	}
	return lines
}

// absent is a missing field, as opposed to null.
type absent struct{}

func orAbsent(m map[string]any, key string) any {
	if v, ok := m[key]; ok {
		return v
	}
	return absent{}
}

func short(v any) string {
	if v == (absent{}) {
		return "nothing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > 600 {
		return string(text[:600]) + "…"
	}
	return string(text)
}

// plain converts a transcript to plain values, so one that was read and one that was
// recorded have the same types.
func plain(entries []Entry) (out []any) {
	text, err := json.Marshal(entries)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return []any{err.Error()}
	}
	return out
}
