// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kjson "sigs.k8s.io/json"
)

func parse(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func patched(t *testing.T, raw string, ops []byte) string {
	t.Helper()
	if ops == nil {
		return raw
	}
	p, err := jsonpatch.DecodePatch(ops)
	if err != nil {
		t.Fatalf("decode %s: %v", ops, err)
	}
	out, err := p.Apply([]byte(raw))
	if err != nil {
		t.Fatalf("apply %s to %s: %v", ops, raw, err)
	}
	return string(out)
}

func TestPatch_CarriesOnlyWhatChanged_H2(t *testing.T) {
	for _, c := range []struct{ name, raw, before, after, want string }{
		{"nothing", `{"a":1,"x":2}`, `{"a":1}`, `{"a":1}`, `{"a":1,"x":2}`},
		{"a field, beside one unknown", `{"a":1,"x":2}`, `{"a":1}`, `{"a":3}`, `{"a":3,"x":2}`},
		{"a field that the view writes otherwise", `{"q":"1000m","a":1}`, `{"q":"1","a":1}`, `{"q":"1","a":2}`, `{"q":"1000m","a":2}`},
		{"a default of the view", `{"a":1}`, `{"a":1,"status":{}}`, `{"a":2,"status":{}}`, `{"a":2}`},
		{"an added field", `{"x":2}`, `{}`, `{"a":{"b":1}}`, `{"a":{"b":1},"x":2}`},
		{"a removed field", `{"a":1,"x":2}`, `{"a":1}`, `{}`, `{"x":2}`},
		{"a removed field that only the view has", `{"x":2}`, `{"a":null}`, `{}`, `{"x":2}`},
		{"null becomes a map", `{"a":null}`, `{}`, `{"a":{"b":"c"}}`, `{"a":{"b":"c"}}`},
		{"a map becomes null", `{"a":{"b":1}}`, `{"a":{"b":1}}`, `{"a":null}`, `{"a":null}`},
		{"names with signs", `{"m":{"a/b~c":"1","x":"y"}}`, `{"m":{"a/b~c":"1"}}`, `{"m":{"a/b~c":"2","~1":"3"}}`, `{"m":{"a/b~c":"2","x":"y","~1":"3"}}`},
		{"within a list", `{"l":[{"name":"a","x":1},{"name":"b","x":2}]}`, `{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"a"},{"name":"b","v":3}]}`, `{"l":[{"name":"a","x":1},{"name":"b","x":2,"v":3}]}`},
		{"one more at the end", `{"l":[{"name":"a","x":1}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"a"},{"name":"c"}]}`, `{"l":[{"name":"a","x":1},{"name":"c"}]}`},
		{"one more before others", `{"l":[{"name":"a","x":1}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"c"},{"name":"a"}]}`, `{"l":[{"name":"c"},{"name":"a","x":1}]}`},
		{"one less, and one changed", `{"l":[{"name":"a","x":1},{"name":"b","x":2},{"name":"c","x":3}]}`, `{"l":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, `{"l":[{"name":"b"},{"name":"c","v":1}]}`, `{"l":[{"name":"b","x":2},{"name":"c","x":3,"v":1}]}`},
		{"sorted", `{"l":[{"k":2,"x":2},{"k":1,"x":1}]}`, `{"l":[{"k":2},{"k":1}]}`, `{"l":[{"k":1},{"k":2}]}`, `{"l":[{"k":1,"x":1},{"k":2,"x":2}]}`},
		{"another of the same place", `{"l":[{"name":"a","x":1}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"z"}]}`, `{"l":[{"name":"z"}]}`},
		{"elements without names, in place", `{"l":[{"k":1,"x":1},{"k":2,"x":2}]}`, `{"l":[{"k":1},{"k":2}]}`, `{"l":[{"k":1},{"k":3}]}`, `{"l":[{"k":1,"x":1},{"k":3,"x":2}]}`},
		{"numbers of their kind", `{"a":9007199254740993,"f":1.5,"b":1}`, `{"b":1}`, `{"b":2}`, `{"a":9007199254740993,"f":1.5,"b":2}`},
		{"a list becomes empty", `{"l":[1,2]}`, `{"l":[1,2]}`, `{"l":[]}`, `{"l":[]}`},
		{"a list for a map", `{"l":{"a":1}}`, `{"l":{"a":1}}`, `{"l":[1]}`, `{"l":[1]}`},
	} {
		ops, err := patch([]byte(c.raw), parse(t, c.before), parse(t, c.after))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := patched(t, c.raw, ops); !reflect.DeepEqual(parse(t, got), parse(t, c.want)) {
			t.Errorf("%s: %s makes %s, want %s", c.name, ops, got, c.want)
		}
	}
}

func TestPatch_IsSmall_H2(t *testing.T) {
	for _, c := range []struct{ raw, before, after, want string }{
		{`{"a":1}`, `{"a":1}`, `{"a":1}`, ""},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, `[{"op":"replace","path":"/a/c","value":3}]`},
		{`{"a":1}`, `{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		{`{"l":[1]}`, `{"l":[1]}`, `{"l":[1,false]}`, `[{"op":"add","path":"/l/-","value":false}]`},
		{`{"l":[1,2,3]}`, `{"l":[1,2,3]}`, `{"l":[1]}`, `[{"op":"remove","path":"/l/2"},{"op":"remove","path":"/l/1"}]`},
	} {
		ops, err := patch([]byte(c.raw), parse(t, c.before), parse(t, c.after))
		if err != nil || string(ops) != c.want {
			t.Errorf("patch of %s to %s = %s, %v, want %s", c.before, c.after, ops, err, c.want)
		}
	}
}

// Reversing a list does not cost quadratic time.
func TestPatch_LongListsAreNotComparedAllWithAll(t *testing.T) {
	long := "[" + strings.TrimSuffix(strings.Repeat("1,", 20_000), ",") + "]"
	ops, err := patch([]byte(`{"l":`+long+`}`), parse(t, `{"l":`+long+`}`), parse(t, `{"l":`+strings.ReplaceAll(long, "1", "2")+`}`))
	if err != nil || len(ops) == 0 {
		t.Errorf("patch = %d bytes, %v", len(ops), err)
	}
}

// If the view shows everything, the patch produces what the function produced; fields
// that the view hides are preserved.
func FuzzPatch_H2(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		before := randomTree(r, 4)
		after := changed(r, before)
		raw, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		ops, err := patch(raw, parse(t, string(raw)), after)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(after)
		if err != nil {
			t.Fatal(err)
		}
		got := patched(t, string(raw), ops)
		if !reflect.DeepEqual(parse(t, got), parse(t, string(want))) {
			t.Fatalf("%s by %s = %s, want %s", raw, ops, got, want)
		}
		hidden := map[string]any{"hidden": "h", "shown": before}
		raw, err = json.Marshal(hidden)
		if err != nil {
			t.Fatal(err)
		}
		ops, err = patch(raw, map[string]any{"shown": before}, map[string]any{"shown": after})
		if err != nil {
			t.Fatal(err)
		}
		whole, _ := parse(t, patched(t, string(raw), ops)).(map[string]any)
		if whole["hidden"] != "h" || !reflect.DeepEqual(whole["shown"], parse(t, string(want))) {
			t.Fatalf("%s by %s = %v, want the hidden field and %s", raw, ops, whole, want)
		}
	})
}

func randomTree(r *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for range r.IntN(4) {
		out[string("abc/~\"é "[r.IntN(7)])+string(rune('a'+r.IntN(3)))] = randomValue(r, depth-1)
	}
	return out
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(7); {
	case n == 0:
		return nil
	case n == 1:
		return int64(r.IntN(3))
	case n == 2:
		return r.IntN(2) == 0
	case n == 3 || depth <= 0:
		return string(rune('x' + r.IntN(3)))
	case n == 4:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	case n == 5:
		list := []any{}
		for range r.IntN(4) {
			element := randomTree(r, depth-1)
			element["name"] = string(rune('a' + r.IntN(3)))
			list = append(list, element)
		}
		return list
	}
	return randomTree(r, depth-1)
}

// changed returns a copy of v with random changes.
func changed(r *rand.Rand, v any) any {
	if r.IntN(12) == 0 {
		return randomValue(r, 2)
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			if r.IntN(8) != 0 {
				out[name] = changed(r, value)
			}
		}
		if r.IntN(4) == 0 {
			out["new"] = randomValue(r, 2)
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			if r.IntN(8) != 0 {
				out = append(out, changed(r, value))
			}
		}
		if r.IntN(4) == 0 {
			out = append(out, randomValue(r, 2))
		}
		if r.IntN(6) == 0 {
			r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		}
		return out
	}
	return v
}
