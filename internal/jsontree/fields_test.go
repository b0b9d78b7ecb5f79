// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsontree_test

import (
	"reflect"
	"testing"

	"github.com/flyball-dev/flyball/internal/jsontree"
)

func TestLookup_FindsWhatSetInSets(t *testing.T) {
	for path, want := range map[string][]string{
		"spec.color": {"spec", "color"}, "spec['a.b'].c": {"spec", "a.b", "c"}, "['x/y']": {"x/y"}, "a": {"a"}, "": nil,
	} {
		got := jsontree.SplitPath(path)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("SplitPath(%q) = %q, want %q", path, got, want)
		}
		fields := map[string]any{"spec": "in the way"}
		if len(got) > 1 {
			jsontree.SetIn(fields, "v", got...)
			if value := jsontree.Lookup(fields, got); value != "v" {
				t.Errorf("%q: got %v, want the value that was set", path, value)
			}
		}
	}
	fields := map[string]any{"list": []any{map[string]any{"a": "first"}, "second"}, "none": []any{}, "text": "x"}
	for _, c := range []struct {
		path []string
		want any
	}{
		{[]string{"list", "0", "a"}, "first"}, {[]string{"list", "1"}, nil}, {[]string{"none", "0"}, nil},
		{[]string{"text", "x"}, nil}, {[]string{"absent", "x"}, nil}, {nil, nil},
	} {
		if got := jsontree.Lookup(fields, c.path); got != c.want {
			t.Errorf("Lookup(%q) = %v, want %v", c.path, got, c.want)
		}
	}
}

func TestSameBut_LooksAtBothObjects(t *testing.T) {
	a := map[string]any{"a": int64(1), "n": map[string]any{"x": "y"}, "status": "1"}
	for _, c := range []struct {
		b    map[string]any
		want bool
	}{
		{map[string]any{"a": int64(1), "n": map[string]any{"x": "y"}}, true},
		{map[string]any{"a": int64(1), "n": map[string]any{"x": "z"}}, false},
		{map[string]any{"a": int64(1)}, false},
		{map[string]any{"a": int64(1), "n": map[string]any{"x": "y"}, "more": nil}, false},
	} {
		if got := jsontree.SameBut(a, c.b, "status"); got != c.want {
			t.Errorf("%v and %v are the same but for their status: %v, want %v", a, c.b, got, c.want)
		}
	}
}

// The result shares what it can, so the object that it was made of must stay.
func TestUnmanaged_LeavesItsArgument(t *testing.T) {
	fields := map[string]any{"metadata": map[string]any{"name": "a", "managedFields": []any{}}}
	got := jsontree.Unmanaged(fields)
	if want := map[string]any{"metadata": map[string]any{"name": "a"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if jsontree.Lookup(fields, []string{"metadata", "managedFields"}) == nil {
		t.Error("the argument has lost its managed fields")
	}
}
