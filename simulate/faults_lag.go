// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// watchCache is the watch cache of a server, as its faults have it.
type watchCache struct{ server *Server }

func (w watchCache) Shown(revision int64) int64 {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if lag := w.server.mu.faults.lag; lag > 0 {
		return min(lag, revision)
	}
	return revision
}

func (w watchCache) ShownOf(r schema.GroupResource, shown int64) int64 {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.server.mu.faults.known(r, shown)
}

func (w watchCache) Deliver(changes []revisions.Change) (out []revisions.Change) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	f := &w.server.mu.faults
	for _, c := range append(f.due(), changes...) {
		if !f.keep(c) {
			out = append(out, f.distort(c)...)
		}
	}
	return out
}

func (w watchCache) EndBookmark(r schema.GroupResource) bool {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return !w.server.mu.faults.noEndBookmark[r]
}

func (w watchCache) Rewound(revision int64) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	f := &w.server.mu.faults
	f.late = slices.DeleteFunc(f.late, func(c revisions.Change) bool { return c.Revision > revision })
}

// expiresContinue takes one of the continue tokens that ExpireContinue refuses.
func (s *Server) expiresContinue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	expires := s.mu.faults.expireContinue > 0
	if expires {
		s.mu.faults.expireContinue--
	}
	return expires
}

// publishAfter is how much later changed schemas are published.
func (s *Server) publishAfter() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.faults.publishAfter
}

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
