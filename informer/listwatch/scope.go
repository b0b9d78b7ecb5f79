// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package listwatch

import (
	"fmt"

	"github.com/flyball-dev/flyball/internal/shards"
)

// Scope is the extent of one list and watch.
type Scope struct {
	// Namespace to watch. Empty: all.
	Namespace string
	// LabelSelector and FieldSelector as in the list API. Empty: everything.
	LabelSelector, FieldSelector string
	// Division is the part of these objects that is kept: those of some shards. Zero: all.
	Division Division
	// ShardSelector as in the list API (KEP-5866), which a server that does not know it ignores.
	// Empty: the server sends the objects of all shards, and the client drops those that are not of
	// Division.
	ShardSelector string
}

// Division is the part of a kind's objects in some shards. Zero: all objects. It is comparable.
//
//	By     what decides the shard of an object: "namespace", "uid", or "owner", the UID of its
//	       controller owner, or its own without one
//	Count  of all shards
//	Held   the shards, such as "0-7,9"; empty: none
type Division = shards.Division

// String describes the scope for logs and errors.
func (s Scope) String() string {
	where := "in all namespaces"
	if s.Namespace != "" {
		where = fmt.Sprintf("in namespace %q", s.Namespace)
	}
	for _, sel := range []struct{ name, text string }{{"labels", s.LabelSelector}, {"fields", s.FieldSelector}} {
		if sel.text != "" {
			where += fmt.Sprintf(" with %s %q", sel.name, sel.text)
		}
	}
	if !s.Division.Everything() {
		where += " with " + s.Division.String()
	}
	if s.ShardSelector != "" {
		where += ", selected by the server"
	}
	return where
}
