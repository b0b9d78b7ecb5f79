// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Recipe is of what the object of an apply is made: for each field, whether it
// is as it was or as it was applied. Applies of one shape have the same.
type Recipe struct {
	From   source
	Fields map[string]*Recipe
	Items  []RecipeItem
	Set    []any
}

type source byte

const (
	fromFields source = iota // of both, by recipe.fields
	FromItems                // of both, by recipe.items
	FromLive
	FromPatch
	FromSet // of items that are known by themselves, so all of them by the shape
)

// RecipeItem is an item of a list, and its places in the lists that it is made
// of; -1: in none.
type RecipeItem struct {
	*Recipe
	Live, Patch int
}

// size is about how many bytes it takes.
func (r *Recipe) size() int {
	if r == nil {
		return 0
	}
	n := sizeOf(r.Set)
	for name, part := range r.Fields {
		n += len(name) + part.size()
	}
	for _, item := range r.Items {
		n += item.size()
	}
	return n
}

func ItemAt(list []any, i int) any {
	if i < 0 {
		return nil
	}
	return list[i]
}

// Make makes a value of what was there and of what is applied. It shares
// nothing with them.
func (r *Recipe) Make(live, patch any) any {
	switch r.From {
	case FromLive:
		return runtime.DeepCopyJSONValue(live)
	case FromPatch:
		return runtime.DeepCopyJSONValue(patch)
	case FromSet:
		return runtime.DeepCopyJSONValue(r.Set)
	case FromItems:
		was, _ := live.([]any)
		given, _ := patch.([]any)
		out := make([]any, len(r.Items))
		for i, item := range r.Items {
			out[i] = item.Make(ItemAt(was, item.Live), ItemAt(given, item.Patch))
		}
		return out
	}
	was, _ := live.(map[string]any)
	given, _ := patch.(map[string]any)
	out := make(map[string]any, len(r.Fields))
	for name, part := range r.Fields {
		out[name] = part.Make(was[name], given[name])
	}
	return out
}
