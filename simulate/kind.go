// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

// User is who a request is of.
type User struct {
	Name string
	UID  string
	// Groups it is in, besides those that the server puts it into.
	Groups []string
	// Extra is what else is known of it.
	Extra map[string][]string
}

// Kind is one that the server serves, in one version.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its plural in paths. Empty: the kind in lower case with an s.
	Resource string
	// Namespaced: its objects live in namespaces.
	Namespaced bool
	// Defaults are filled in where an object that is read lacks them at its top
	// level, as the defaults of a CRD's schema are: without a new
	// resourceVersion. nil: none.
	Defaults map[string]any
}

// Install serves another kind, as when its CRD is created.
func (s *Server) Install(kind Kind) {
	s.install(kinds.Kind{GroupVersionKind: kind.GroupVersionKind, Resource: kind.Resource, Namespaced: kind.Namespaced, Defaults: kind.Defaults})
}

func (s *Server) install(kind kinds.Kind) {
	k := kind.Completed()
	s.kinds.Install(kinds.FamilyOf(k))
}
