// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
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
		{"elements without names, of which one is changed that hides nothing", `{"l":[{"k":1,"x":1},{"k":2}]}`, `{"l":[{"k":1},{"k":2}]}`, `{"l":[{"k":1},{"k":3}]}`, `{"l":[{"k":1,"x":1},{"k":3}]}`},
		{"an element without a name, and one more", `{"l":[{"k":1,"x":1}]}`, `{"l":[{"k":1}]}`, `{"l":[{"k":1},{"k":2}]}`, `{"l":[{"k":1,"x":1},{"k":2}]}`},
		{"a mount of a volume that two have, the first removed", `{"l":[{"name":"v","mountPath":"/a","x":1},{"name":"v","mountPath":"/b","x":2}]}`, `{"l":[{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/b"}]}`, `{"l":[{"name":"v","mountPath":"/b","ro":true}]}`, `{"l":[{"name":"v","mountPath":"/b","ro":true,"x":2}]}`},
		{"ports without names, sorted and changed", `{"l":[{"containerPort":90,"x":1},{"containerPort":80,"x":2}]}`, `{"l":[{"containerPort":90},{"containerPort":80}]}`, `{"l":[{"containerPort":80,"p":"UDP"},{"containerPort":90,"p":"UDP"}]}`, `{"l":[{"containerPort":80,"p":"UDP","x":2},{"containerPort":90,"p":"UDP","x":1}]}`},
		{"a name that changes, of the same place", `{"l":[{"name":"v","mountPath":"/a","x":1}]}`, `{"l":[{"name":"v","mountPath":"/a"}]}`, `{"l":[{"name":"w","mountPath":"/a"}]}`, `{"l":[{"name":"w","mountPath":"/a","x":1}]}`},
		{"equal ones, of which all stay", `{"l":[{"k":1,"x":1},{"k":1,"x":2}]}`, `{"l":[{"k":1},{"k":1}]}`, `{"l":[{"k":0},{"k":1},{"k":1}]}`, `{"l":[{"k":0},{"k":1,"x":1},{"k":1,"x":2}]}`},
		{"equal ones that hide the same, of which one goes", `{"l":[{"k":1,"x":1},{"k":1,"x":1}]}`, `{"l":[{"k":1},{"k":1}]}`, `{"l":[{"k":1}]}`, `{"l":[{"k":1,"x":1}]}`},
		{"numbers of their kind", `{"a":9007199254740993,"f":1.5,"b":1}`, `{"b":1}`, `{"b":2}`, `{"a":9007199254740993,"f":1.5,"b":2}`},
		{"what a view omits gets a field", `{"m":{"x":1}}`, `{}`, `{"m":{"a":1}}`, `{"m":{"a":1,"x":1}}`},
		{"a list becomes empty", `{"l":[1,2]}`, `{"l":[1,2]}`, `{"l":[]}`, `{"l":[]}`},
		{"a list for a map", `{"l":{"a":1}}`, `{"l":{"a":1}}`, `{"l":[1]}`, `{"l":[1]}`},
	} {
		ops, err := patch([]byte(c.raw), parse(t, c.before), parse(t, c.after), refuse)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := patched(t, c.raw, ops); !reflect.DeepEqual(parse(t, got), parse(t, c.want)) {
			t.Errorf("%s: %s makes %s, want %s", c.name, ops, got, c.want)
		}
	}
}

var errUncertain = errors.New("uncertain")

// refuse takes all that a view does not show for unknown.
func refuse([]string) error { return errUncertain }

// Where it is not certain which element has the hidden field, no element gets it, and it
// is not lost without a word.
func TestPatch_UncertainOriginsAreRefused_H2(t *testing.T) {
	for _, c := range []struct{ name, raw, before, after string }{
		{"a changed element, or another", `[{"k":1,"x":1},{"k":2,"x":2}]`, `[{"k":1},{"k":2}]`, `[{"k":1},{"k":3}]`},
		{"a toleration is replaced", `[{"key":"a","x":1}]`, `[{"key":"a"}]`, `[{"key":"b"}]`},
		{"one is changed, and one appended", `[{"k":1,"x":1}]`, `[{"k":1}]`, `[{"k":2},{"k":3}]`},
		{"one of two equal ones is removed", `[{"k":1,"x":1},{"k":1,"x":2}]`, `[{"k":1},{"k":1}]`, `[{"k":1}]`},
		{"one of two of a name is removed, and the other changed", `[{"name":"v","x":1},{"name":"v","x":2}]`, `[{"name":"v"},{"name":"v"}]`, `[{"name":"v","ro":true}]`},
		{"another one of the same type", `[{"name":"old","type":"S3","x":1}]`, `[{"name":"old","type":"S3"}]`, `[{"name":"new","type":"S3"}]`},
		{"name and port disagree", `[{"name":"a","port":1,"x":1},{"name":"b","port":2,"x":2}]`, `[{"name":"a","port":1},{"name":"b","port":2}]`, `[{"name":"a","port":2},{"name":"b","port":1}]`},
		{"a port changes", `[{"port":80,"x":1}]`, `[{"port":80}]`, `[{"port":81}]`},
		{"a list in a list", `[[{"x":1}],[1]]`, `[[{}],[1]]`, `[[{"k":1}],[2]]`},
	} {
		ops, err := patch([]byte(`{"l":`+c.raw+`}`), parse(t, `{"l":`+c.before+`}`), parse(t, `{"l":`+c.after+`}`), refuse)
		if !errors.Is(err, errUncertain) {
			t.Errorf("%s: %s, %v, want it refused", c.name, ops, err)
		}
	}
}

// More than 1,000 elements that are changed in place keep what they hide.
func TestPatch_LongListsKeepWhatIsHidden_H2(t *testing.T) {
	var raw, before, after []any
	for i := range 3000 {
		name := fmt.Sprint("n", i)
		raw = append(raw, map[string]any{"name": name, "x": int64(i)})
		before = append(before, map[string]any{"name": name})
		after = append(after, map[string]any{"name": name, "v": int64(1)})
	}
	text, err := json.Marshal(map[string]any{"l": raw})
	if err != nil {
		t.Fatal(err)
	}
	ops, err := patch(text, map[string]any{"l": before}, map[string]any{"l": after}, refuse)
	if err != nil {
		t.Fatal(err)
	}
	got := parse(t, patched(t, string(text), ops)).(map[string]any)["l"].([]any)
	for i, element := range got {
		if e := element.(map[string]any); e["x"] != int64(i) || e["v"] != int64(1) {
			t.Fatalf("element %d is %v, want it changed, with its hidden field", i, e)
		}
	}
}

// After random edits no element has the hidden field of another. Each hidden field has the
// number of its element, which the model of the edit carries along.
func FuzzPatch_NoElementGetsFieldsOfAnother_H2(f *testing.F) {
	for seed := range uint64(2000) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 2))
		type element struct {
			shown map[string]any
			id    int // 0: a new one
		}
		field := []string{"name", "mountPath", "containerPort", "key", "k", "uid"}[r.IntN(6)]
		unique, next := r.IntN(2) == 0, 0
		fresh := func() map[string]any { // a value of the field is never given to another
			next++
			shown := map[string]any{field: fmt.Sprint("v", next), "v": int64(r.IntN(2))}
			if !unique && (next < 3 || r.IntN(2) == 0) { // at least two have it, so that it identifies none
				shown[field] = "same"
				return shown
			}
			if r.IntN(3) == 0 {
				delete(shown, field)
			}
			return shown
		}
		var list []element
		var raw, before, after []any
		for i := range 2 + r.IntN(5) {
			e := element{fresh(), i + 1}
			list = append(list, e)
			before = append(before, maps.Clone(e.shown))
			hidden := maps.Clone(e.shown)
			if r.IntN(3) != 0 {
				hidden["x"] = int64(e.id)
			}
			raw = append(raw, hidden)
		}
		for range r.IntN(4) {
			switch n := r.IntN(5); {
			case n == 0:
				list = slices.Insert(list, r.IntN(len(list)+1), element{shown: fresh()})
			case len(list) == 0:
			case n == 1:
				i := r.IntN(len(list))
				list = slices.Delete(list, i, i+1)
			case n == 2:
				r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			case n == 3:
				list[r.IntN(len(list))].shown["v"] = int64(r.IntN(4))
			case n == 4: // another in its place
				list[r.IntN(len(list))] = element{shown: fresh()}
			}
		}
		ids := map[string]map[int]bool{} // elements that look the same are the same to the function
		look := func(v any) string { text, _ := json.Marshal(v); return string(text) }
		for _, e := range list {
			after = append(after, maps.Clone(e.shown))
			if ids[look(e.shown)] == nil {
				ids[look(e.shown)] = map[int]bool{}
			}
			ids[look(e.shown)][e.id] = true
		}
		for i, e := range before {
			if ids[look(e)] != nil {
				ids[look(e)][i+1] = true
			}
		}
		text, err := json.Marshal(map[string]any{"l": raw})
		if err != nil {
			t.Fatal(err)
		}
		var uncertain bool
		ops, err := patch(text, map[string]any{"l": before}, map[string]any{"l": after}, func([]string) error { uncertain = true; return nil })
		if err != nil {
			t.Fatal(err)
		}
		got, _ := parse(t, patched(t, string(text), ops)).(map[string]any)["l"].([]any)
		if len(got) != len(after) {
			t.Fatalf("%s becomes %v, want %v", text, got, after)
		}
		for i := range got {
			e := maps.Clone(got[i].(map[string]any))
			x, has := e["x"]
			delete(e, "x")
			if !reflect.DeepEqual(e, after[i]) {
				t.Fatalf("%s becomes %v, want %v", text, got, after)
			}
			if id, _ := x.(int64); has && !ids[look(e)][int(id)] {
				t.Fatalf("%s, with the view %v changed to %v, becomes %v: element %d has the field of element %d", text, before, after, got, i, id-1)
			}
			of := list[i].id
			if has || uncertain || of == 0 || raw[of-1].(map[string]any)["x"] == nil {
				continue
			}
			alike := 0 // with what it looked like before: one of them may have its field
			for _, other := range list {
				if s := look(other.shown); other.id != of && (s == look(before[of-1]) || s == look(e)) {
					alike++
				}
			}
			if alike == 0 {
				t.Fatalf("%s, with the view %v changed to %v, becomes %v: element %d has lost its field", text, before, after, got, i)
			}
		}
	})
}

func TestPatch_IsSmall_H2(t *testing.T) {
	for _, c := range []struct{ raw, before, after, want string }{
		{`{"a":1}`, `{"a":1}`, `{"a":1}`, ""},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, `[{"op":"replace","path":"/a/c","value":3}]`},
		{`{"a":1}`, `{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		{`{"l":[1]}`, `{"l":[1]}`, `{"l":[1,false]}`, `[{"op":"add","path":"/l/-","value":false}]`},
		{`{"l":[1,2,3]}`, `{"l":[1,2,3]}`, `{"l":[1]}`, `[{"op":"remove","path":"/l/2"},{"op":"remove","path":"/l/1"}]`},
	} {
		ops, err := patch([]byte(c.raw), parse(t, c.before), parse(t, c.after), refuse)
		if err != nil || string(ops) != c.want {
			t.Errorf("patch of %s to %s = %s, %v, want %s", c.before, c.after, ops, err, c.want)
		}
	}
}

// Reversing a list does not cost quadratic time.
func TestPatch_LongListsAreNotComparedAllWithAll(t *testing.T) {
	long := "[" + strings.TrimSuffix(strings.Repeat("1,", 20_000), ",") + "]"
	ops, err := patch([]byte(`{"l":`+long+`}`), parse(t, `{"l":`+long+`}`), parse(t, `{"l":`+strings.ReplaceAll(long, "1", "2")+`}`), refuse)
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
		ops, err := patch(raw, parse(t, string(raw)), after, refuse)
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
		ops, err = patch(raw, map[string]any{"shown": before}, map[string]any{"shown": after}, refuse)
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
