// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"slices"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
)

// recipeOf finds out from which parts of live and patch made consists. It returns nil if it
// cannot.
func (s *shaping) recipeOf(made, live, patch any, at smd.TypeRef) *ownership.Recipe {
	switch {
	case patch != nil && jsontree.Equal(made, patch):
		return &ownership.Recipe{From: ownership.FromPatch}
	case live != nil && jsontree.Equal(made, live):
		return &ownership.Recipe{From: ownership.FromLive}
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
			return &ownership.Recipe{From: ownership.FromSet, Set: made}
		default:
			return s.recipeOfItems(made, live, patch, atom.List)
		}
	}
	return nil
}

func (s *shaping) recipeOfFields(made map[string]any, live, patch any, m *smd.Map) *ownership.Recipe {
	was, ok := live.(map[string]any)
	given, also := patch.(map[string]any)
	if !ok && live != nil || !also && patch != nil {
		return nil
	}
	r := &ownership.Recipe{Fields: map[string]*ownership.Recipe{}}
	for name, value := range made {
		if r.Fields[name] = s.recipeOf(value, was[name], given[name], typeOf(m, name)); r.Fields[name] != nil {
			continue
		}
		if _, null := was[name]; value != nil || !null {
			return nil
		}
		r.Fields[name] = &ownership.Recipe{From: ownership.FromLive}
	}
	return r
}

func (s *shaping) recipeOfItems(made []any, live, patch any, l *smd.List) *ownership.Recipe {
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
	r := &ownership.Recipe{From: ownership.FromItems}
	for i, key := range keys {
		item := ownership.RecipeItem{Live: slices.Index(before, key), Patch: slices.Index(applied, key)}
		item.Recipe = s.recipeOf(made[i], ownership.ItemAt(was, item.Live), ownership.ItemAt(given, item.Patch), l.ElementType)
		if item.Recipe == nil {
			return nil
		}
		r.Items = append(r.Items, item)
	}
	return r
}
