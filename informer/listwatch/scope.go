// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package listwatch

import (
	"fmt"
)

// Scope is the extent of one list and watch.
type Scope struct {
	// Namespace to watch. Empty: all.
	Namespace string
	// LabelSelector and FieldSelector as in the list API. Empty: everything.
	LabelSelector, FieldSelector string
}

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
	return where
}
