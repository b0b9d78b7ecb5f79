// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsontree

import (
	"encoding/json"
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// Each tree is equal to itself alone.
func TestEqual_AgreesWithDeepEqual(t *testing.T) {
	values := []any{nil, true, false, "", "a", int64(0), int64(9007199254740993), float64(9007199254740992), 0.5, int32(0),
		[]any(nil), []any{}, []any{nil}, []any{"a"}, []any{"a", []any{}}, []string{"a"},
		map[string]any(nil), map[string]any{}, map[string]any{"a": nil}, map[string]any{"b": nil},
		map[string]any{"a": "b", "c": map[string]any{"d": []any{int64(1)}}}, map[string]any{"a": "b", "c": map[string]any{"d": []any{float64(1)}}}}
	for i, a := range values {
		for j, b := range values {
			if got, want := Equal(a, b), reflect.DeepEqual(a, b); got != want || want != (i == j) {
				t.Errorf("Equal(%#v, %#v) is %v, want %v", a, b, got, want)
			}
		}
	}
}

func TestOf_KeepsIntegers(t *testing.T) {
	got, err := Of[map[string]any](struct {
		N int64   `json:"n"`
		F float64 `json:"f"`
	}{9007199254740993, 0.5})
	if err != nil || !Equal(got, map[string]any{"n": int64(9007199254740993), "f": 0.5}) {
		t.Errorf("the tree is %v (%v)", got, err)
	}
	if _, err := Of[map[string]any]("text"); err == nil {
		t.Error("text is a tree with fields; want an error")
	}
}

func TestMergePatch_IsWhatChanged(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`{"a":1}`, `{"a":1}`, `{}`},
		{`{"a":1,"b":2}`, `{"b":3,"c":4}`, `{"a":null,"b":3,"c":4}`},
		{`{"a":{"b":1,"c":[1]}}`, `{"a":{"b":1,"c":[1,2]}}`, `{"a":{"c":[1,2]}}`},
		{`{"a":{"b":1}}`, `{"a":3}`, `{"a":3}`},
		{`{"a":null}`, `{}`, `{"a":null}`},
		{`{"n":9007199254740993}`, `{"n":9007199254740992}`, `{"n":9007199254740992}`},
	} {
		if got := MergePatch(tree(t, c.from), tree(t, c.to)); !Equal(got, tree(t, c.want)) {
			t.Errorf("from %s to %s the patch is %v, want %s", c.from, c.to, got, c.want)
		}
	}
}

func TestMerge_ChangesNeitherArgument(t *testing.T) {
	const from, with, want = `{"a":{"b":1,"c":2},"d":[1],"e":3}`, `{"a":{"b":null,"f":{"g":null,"h":1}},"d":[],"e":null}`, `{"a":{"c":2,"f":{"h":1}},"d":[]}`
	is, patch := tree(t, from), tree(t, with)
	if got := Merge(is, patch); !Equal(got, tree(t, want)) {
		t.Errorf("the result is %v, want %s", got, want)
	}
	if !Equal(is, tree(t, from)) || !Equal(patch, tree(t, with)) {
		t.Errorf("the arguments are now %v and %v", is, patch)
	}
}

// Merge does what the API server's library does, and undoes what MergePatch finds.
func FuzzMerge_AgreesWithTheServersLibrary(f *testing.F) {
	f.Add(`{"a":{"b":[1]},"c":"d"}`, `{"a":{"b":null,"e":{"f":null,"g":2}},"c":[3]}`)
	f.Add(`{"a":1}`, `{"a":{"b":null}}`)
	f.Fuzz(func(t *testing.T, text, change string) {
		from, err := Of[map[string]any](json.RawMessage(text))
		patch, err2 := Of[map[string]any](json.RawMessage(change))
		if err != nil || err2 != nil || from == nil || patch == nil {
			t.Skip("not two objects")
		}
		got := Merge(from, patch)
		out, err := jsonpatch.MergePatch([]byte(text), []byte(change))
		if err != nil {
			t.Skip("the library takes it for something else")
		}
		if want, err := Of[map[string]any](json.RawMessage(out)); err != nil || !Equal(withoutNulls(got), withoutNulls(want)) {
			t.Errorf("%s with %s becomes %v, want %s (%v)", text, change, got, out, err)
		}
		if again := Merge(from, MergePatch(from, got)); !Equal(withoutNulls(again), withoutNulls(got)) {
			t.Errorf("from %s the patch to %v makes %v", text, got, again)
		}
	})
}

// withoutNulls removes fields that are null, also in lists: the library removes them from the
// lists of a patch, although RFC 7386 replaces a list as it is.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range value {
			if inner != nil {
				out[name] = withoutNulls(inner)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range value {
			out = append(out, withoutNulls(inner))
		}
		return out
	}
	return value
}
