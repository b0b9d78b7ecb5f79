// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// Each kind of a real server has a cache of its own, which can lag behind the others.

// known is how much of a revision the cache of a resource knows.
func (f *faults) known(r schema.GroupResource, revision int64) int64 {
	if behind, lags := f.behind[r]; lags {
		return min(behind, revision)
	}
	return revision
}

// keep keeps c for later, if its resource lags behind it, and reports whether it does.
func (f *faults) keep(c revisions.Change) bool {
	if f.known(c.Resource, c.Revision) == c.Revision {
		return false
	}
	f.late = append(f.late, c)
	return true
}

// due takes out what was kept of resources that do not lag behind it any more.
func (f *faults) due() (out []revisions.Change) {
	f.late = slices.DeleteFunc(f.late, func(c revisions.Change) bool {
		due := f.known(c.Resource, c.Revision) == c.Revision
		if due {
			out = append(out, c)
		}
		return due
	})
	return out
}
