// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

// Watched returns the resources of the open watches, in order.
func (s *Server) Watched() []schema.GroupResource { return s.store.Watched() }

// Kinds returns the kinds that the server serves, in the order of their names.
func (s *Server) Kinds() []schema.GroupKind {
	all := map[schema.GroupKind]bool{}
	for _, k := range s.kinds.Served(func(*kinds.Kind) bool { return true }) {
		all[k.GroupVersionKind.GroupKind()] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
	})
}

// KindOf returns the kind of a resource; empty if the server does not serve it.
func (s *Server) KindOf(r schema.GroupResource) schema.GroupKind {
	if kind := s.kinds.Stored(r); kind != nil {
		return kind.GroupKind()
	}
	return schema.GroupKind{}
}

// IsCustom reports whether a CRD defines a kind.
func (s *Server) IsCustom(r schema.GroupResource) bool {
	f := s.kinds.Family(r)
	return f != nil && f.Definition != nil
}
