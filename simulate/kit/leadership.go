// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"slices"
	"time"
)

// leases are renewed for as long as their holder lives.
const leases = "Lease.coordination.k8s.io"

// leadership tracks the holder of the lease in the order of the server's revisions.
type leadership struct {
	h       *History
	leader  string // a process; empty: none
	unknown bool   // the lease was changed by another client
	// since is when each process first led; negative: never.
	since map[string]time.Duration
}

func newLeadership(h *History) *leadership {
	return &leadership{h: h, since: map[string]time.Duration{}}
}

func (l *leadership) take(e Event) {
	switch {
	case l.h.Lease == "":
	case e.What == Started:
		l.since[e.Who] = -1
	case e.What == Changed && e.Kind == leases && e.Key == l.h.Lease:
		l.leader, l.unknown = "", e.Quiet || e.Name == "deleted"
		switch since, ours := l.since[e.Who]; {
		case !ours:
			l.unknown = true
		case e.Holder != "" && !l.unknown:
			l.leader = e.Who
			if since < 0 {
				l.since[e.Who] = e.At
			}
		}
	}
}

func (l *leadership) String() string {
	if l.leader == "" {
		return "no process's"
	}
	return l.leader + "'s"
}

// forbids reports whether e is a write that only the leader may make.
func (l *leadership) forbids(e Event) bool {
	if e.What != Changed || e.Quiet || l.h.Lease == "" || l.unknown || e.Who == l.leader {
		return false
	}
	_, ours := l.since[e.Who]
	return ours && !slices.ContainsFunc(l.h.Unguarded, func(named string) bool { return ofKind(e.Kind, named) })
}
