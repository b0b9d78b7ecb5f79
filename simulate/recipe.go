// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
)

// recipe is of what the object of an apply is made: for each field, whether it
// is as it was or as it was applied. Applies of one shape have the same.
type recipe struct {
	from   source
	fields map[string]*recipe
	items  []recipeItem
	set    []any
}

type source byte

const (
	fromFields source = iota // of both, by recipe.fields
	fromItems                // of both, by recipe.items
	fromLive
	fromPatch
	fromSet // of items that are known by themselves, so all of them by the shape
)

// recipeItem is an item of a list, and its places in the lists that it is made
// of; -1: in none.
type recipeItem struct {
	*recipe
	live, patch int
}

// recipeOf finds out of what made is made. nil: it cannot be told.
func (s *shaping) recipeOf(made, live, patch any, at smd.TypeRef) *recipe {
	switch {
	case patch != nil && jsonvalue.Equal(made, patch):
		return &recipe{from: fromPatch}
	case live != nil && jsonvalue.Equal(made, live):
		return &recipe{from: fromLive}
	}
	atom, ok := s.schema.Resolve(at)
	if !ok {
		return nil
	}
	switch made := made.(type) {
	case map[string]any:
		if atom.Map != nil {
			return s.recipeOfFields(made, live, patch, atom.Map)
		}
	case []any:
		switch {
		case atom.List == nil || atom.List.ElementRelationship != smd.Associative:
		case len(atom.List.Keys) == 0:
			return &recipe{from: fromSet, set: made}
		default:
			return s.recipeOfItems(made, live, patch, atom.List)
		}
	}
	return nil
}

func (s *shaping) recipeOfFields(made map[string]any, live, patch any, m *smd.Map) *recipe {
	was, ok := live.(map[string]any)
	given, also := patch.(map[string]any)
	if !ok && live != nil || !also && patch != nil {
		return nil
	}
	r := &recipe{fields: map[string]*recipe{}}
	for name, value := range made {
		if r.fields[name] = s.recipeOf(value, was[name], given[name], typeOf(m, name)); r.fields[name] != nil {
			continue
		}
		if _, null := was[name]; value != nil || !null {
			return nil
		}
		r.fields[name] = &recipe{from: fromLive}
	}
	return r
}

func (s *shaping) recipeOfItems(made []any, live, patch any, l *smd.List) *recipe {
	was, ok := live.([]any)
	given, also := patch.([]any)
	if !ok && live != nil || !also && patch != nil {
		return nil
	}
	keys, ok := s.itemKeys(made, l)
	before, also := s.itemKeys(was, l)
	applied, and := s.itemKeys(given, l)
	if !ok || !also || !and {
		return nil
	}
	r := &recipe{from: fromItems}
	for i, key := range keys {
		item := recipeItem{live: slices.Index(before, key), patch: slices.Index(applied, key)}
		item.recipe = s.recipeOf(made[i], itemAt(was, item.live), itemAt(given, item.patch), l.ElementType)
		if item.recipe == nil {
			return nil
		}
		r.items = append(r.items, item)
	}
	return r
}

// size is about how many bytes it takes.
func (r *recipe) size() int {
	if r == nil {
		return 0
	}
	n := sizeOf(r.set)
	for name, part := range r.fields {
		n += len(name) + part.size()
	}
	for _, item := range r.items {
		n += item.size()
	}
	return n
}

func itemAt(list []any, i int) any {
	if i < 0 {
		return nil
	}
	return list[i]
}

// make makes a value of what was there and of what is applied. It shares
// nothing with them.
func (r *recipe) make(live, patch any) any {
	switch r.from {
	case fromLive:
		return runtime.DeepCopyJSONValue(live)
	case fromPatch:
		return runtime.DeepCopyJSONValue(patch)
	case fromSet:
		return runtime.DeepCopyJSONValue(r.set)
	case fromItems:
		was, _ := live.([]any)
		given, _ := patch.([]any)
		out := make([]any, len(r.items))
		for i, item := range r.items {
			out[i] = item.make(itemAt(was, item.live), itemAt(given, item.patch))
		}
		return out
	}
	was, _ := live.(map[string]any)
	given, _ := patch.(map[string]any)
	out := make(map[string]any, len(r.fields))
	for name, part := range r.fields {
		out[name] = part.make(was[name], given[name])
	}
	return out
}
