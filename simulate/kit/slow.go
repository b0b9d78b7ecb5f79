// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
)

type slowness struct {
	resource schema.GroupResource
	by       time.Duration
	faults   int   // active
	known    int64 // revision
}

func (w *World) slow(r schema.GroupResource, by time.Duration) (over func()) {
	kind, now := w.kindOf(r), w.server.Revision()
	w.mu.Lock()
	s := w.mu.slow[kind]
	if s == nil {
		s = &slowness{resource: r, known: now}
		w.mu.slow[kind] = s
	}
	s.faults++
	s.by = by
	known := s.known
	w.mu.Unlock()
	w.server.LagKindTo(r, known)
	return func() { w.quickAgain(kind) }
}

// quickAgain ends one slow fault of a kind, and the slowness with the last of them.
func (w *World) quickAgain(kind string) {
	w.mu.Lock()
	s := w.mu.slow[kind]
	s.faults--
	last := s.faults == 0
	if last {
		delete(w.mu.slow, kind)
	}
	w.mu.Unlock()
	if last {
		w.server.CatchUpKind(s.resource)
	}
}

// slowly delays a change if its kind is slow. It does not block.
func (w *World) slowly(c simulate.Change) {
	kind := c.Kind.String()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.mu.slow[kind]
	if s == nil {
		return
	}
	by := s.by
	w.group.Go(func() {
		if w.instants.Rest(w.faulty, fmt.Sprintf("slow %s %d", kind, c.Revision), by) {
			w.catchUp(kind, s, c.Revision)
		}
	})
}

// catchUp publishes a revision of a slow kind, unless it is no longer slow.
func (w *World) catchUp(kind string, s *slowness, revision int64) {
	w.mu.Lock()
	slow := w.mu.slow[kind] == s
	s.known = max(s.known, revision)
	known := s.known
	w.mu.Unlock()
	if slow {
		w.server.LagKindTo(s.resource, known)
	}
}
