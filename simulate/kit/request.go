// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import "github.com/flyball-dev/flyball/simulate"

// looksOn reports whether r is a read by the scenario, which is not recorded.
func looksOn(r simulate.Request) bool { return r.Client == "user" && !r.Writes() }

func kindText(r simulate.Request) string {
	if r.Kind.Kind == "" {
		return ""
	}
	return r.Kind.String()
}

func pathText(r simulate.Request) string {
	if r.Query == "" {
		return r.Path
	}
	return r.Path + "?" + r.Query
}
