// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Recipe says of what the result of an apply consists: for each field, whether it is the
// live or the applied one. Applies of one shape have the same recipe.
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
	FromSet // of items that are their own keys, so the shape has all of them
)

// RecipeItem is an item of a list, and its index in the two lists; -1: it is not there.
type RecipeItem struct {
	*Recipe
	Live, Patch int
}

// size estimates its bytes.
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

// Make builds a value from the live and the applied one. The result shares nothing with
// them.
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
