// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

// User is the user of a request.
type User struct {
	Name string
	UID  string
	// Groups of the user, besides those that the server adds.
	Groups []string
	// Extra is further information about the user.
	Extra map[string][]string
}

// Kind is a kind that the server serves, in one version.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural in paths. Empty: the kind in lower case with an s.
	Resource string
	// Namespaced: its objects live in namespaces.
	Namespaced bool
	// Defaults for top-level fields that an object lacks when it is read, like the defaults
	// in the schema of a CRD: they do not change the resourceVersion. nil: none.
	Defaults map[string]any
}

// Install serves another kind, as when its CRD is created.
func (s *Server) Install(kind Kind) {
	k := kinds.Kind{GroupVersionKind: kind.GroupVersionKind, Resource: kind.Resource, Namespaced: kind.Namespaced, Defaults: kind.Defaults}
	s.kinds.Install(kinds.FamilyOf(k.Completed()))
}
