// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsontree

import (
	"reflect"
	"testing"

	kjson "sigs.k8s.io/json"
)

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestApply_ChangesWhatIsStillAsItWas_O9(t *testing.T) {
	for _, c := range []struct{ was, is, now, want string }{
		{`{}`, `{"a":1}`, `{}`, `{"a":1}`},
		{`{"a":1}`, `{}`, `{"a":1,"b":2}`, `{"b":2}`},
		{`{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":3}`},
		{`{"a":{"b":1}}`, `{"a":{"b":1,"c":2}}`, `{"a":{"b":5}}`, `{"a":{"b":5,"c":2}}`},
		{`{"a":{"b":1}}`, `{"a":{"b":1,"c":2}}`, `{}`, `{}`},
		{`{"a":{"b":1}}`, `{"a":{"b":1,"c":2}}`, `{"a":3}`, `{"a":3}`},
		{`{}`, `{"a":{"b":1}}`, `{"a":{"c":2}}`, `{"a":{"c":2}}`},
		{`{"a":[1]}`, `{"a":[1,2]}`, `{"a":[1]}`, `{"a":[1,2]}`},
		{`{"a":[1]}`, `{"a":[1,2]}`, `{"a":[0,1]}`, `{"a":[0,1]}`},
		{`{"a/b":{"~c":1}}`, `{"a/b":{"~c":2}}`, `{"a/b":{"~c":1}}`, `{"a/b":{"~c":2}}`},
		{`{"":1}`, `{"":2}`, `{"":1}`, `{"":2}`},
		{`{"n":9007199254740993}`, `{"n":9007199254740992}`, `{"n":9007199254740993}`, `{"n":9007199254740992}`},
	} {
		now := tree(t, c.now)
		Apply(now, Diff(tree(t, c.was), tree(t, c.is)))
		if want := tree(t, c.want); !reflect.DeepEqual(now, want) {
			t.Errorf("from %s to %s, %s becomes %v, want %s", c.was, c.is, c.now, now, c.want)
		}
	}
}

func TestApply_ARootIsNoField_O9(t *testing.T) {
	now := map[string]any{"a": int64(1)}
	if n := Apply(now, []Change{{Path: ""}, {Path: "a", Was: int64(1)}}); n != 0 || now["a"] != int64(1) {
		t.Errorf("%d changes are made, and the tree is %v; want none", n, now)
	}
}

func TestChange_FieldIsReadable(t *testing.T) {
	if got := (Change{Path: "/spec/a~1b/~0c"}).Field(); got != "spec.a/b.~c" {
		t.Errorf("the field is %q", got)
	}
}

// The changes from one tree to another make the one the other.
func FuzzDiff_MakesTheOtherTree_O9(f *testing.F) {
	f.Add(`{"a":{"b":[1]},"c":null}`, `{"a":{"b":[2],"~":{}},"d":"e"}`)
	f.Add(`{"a":1}`, `{"a":{}}`)
	f.Fuzz(func(t *testing.T, from, to string) {
		var was, now, is map[string]any
		for into, text := range map[*map[string]any]string{&was: from, &now: from, &is: to} {
			if kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), into) != nil {
				t.Skip("it is no JSON object")
			}
		}
		if was == nil || is == nil {
			t.Skip("null has no fields")
		}
		changes := Diff(was, is)
		if n := Apply(now, changes); n != len(changes) {
			t.Fatalf("%d of the changes %v are made", n, changes)
		}
		if left := Diff(now, is); len(left) > 0 {
			t.Errorf("from %s to %s, %v is left", from, to, left)
		}
	})
}
