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
			eachDifference("", a[i], b[i], func(path string, x, y any) {
				lines = append(lines, fmt.Sprintf("step %d: %s: %s: got %s, want %s", i+1, got[i].Do, path, short(x), short(y)))
			})
		}
	}
	return lines
}

// eachDifference calls see for each value in which two plain values differ, in the order of
// their paths: fields of objects, elements of lists of the same length. One of the two may be
// absent.
func eachDifference(path string, a, b any, see func(path string, a, b any)) {
	switch inB := b.(type) {
	case map[string]any:
		inA, ok := a.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(inB)
		maps.Copy(keys, inA)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			eachDifference(path+"."+key, orAbsent(inA, key), orAbsent(inB, key), see)
		}
		return
	case []any:
		inA, ok := a.([]any)
		if !ok || len(inA) != len(inB) {
			break
		}
		for i := range inB {
			eachDifference(fmt.Sprintf("%s[%d]", path, i), inA[i], inB[i], see)
		}
		return
	}
	if !reflect.DeepEqual(a, b) {
		see(path, a, b)
	}
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
