// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"slices"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// countAnomaly counts an anomaly and reports whether it is the first of its
// kind.
func countAnomaly(a *state.Anomalies, kind base.Anomaly) (first bool) {
	var n *int
	switch kind {
	case base.Doubled:
		n = &a.Doubled
	case base.Late:
		n = &a.Late
	case base.Disordered:
		n = &a.Disordered
	case base.OtherKind:
		n = &a.OtherKind
	case base.OtherNamespace, base.Unselected:
		n = &a.OutOfScope
	default:
		return false
	}
	*n++
	return *n == 1
}

// shownEvents is how many events of a stream are remembered.
const shownEvents = 64

type shown struct {
	key     kube.Key
	version kube.Version
	ended   bool
}

// streamOrder compares the events of one scope's watches with the last ones
// before them. It does not cover the initial events of a streaming list, which
// have no order. It is pure.
type streamOrder struct {
	ring [shownEvents]shown
	next int
}

// check classifies e, when newest is the newest version of this stream and
// earlier ones. known returns the version of a key that is held or on its way;
// 0: none.
func (o *streamOrder) check(e shown, newest kube.Version, known func(kube.Key) kube.Version) base.Anomaly {
	if e.version == 0 || newest == 0 || e.version > newest {
		return base.Sound
	}
	k := known(e.key)
	switch {
	case o.stale(e):
		return base.Late
	case slices.Contains(o.ring[:], e):
		return base.Doubled
	case k == e.version && e.ended:
		return base.Sound // some servers report the object's last version with its deletion
	case k == e.version:
		return base.Doubled
	case e.version == newest:
		return base.Sound // one revision can change several objects, as when a lease expires
	case k > e.version:
		return base.Late
	}
	return base.Disordered
}

// stale reports whether a newer event of the same key is remembered, so that e
// must be dropped even if the key is not held any more.
func (o *streamOrder) stale(e shown) bool {
	if e.version == 0 {
		return false
	}
	for _, was := range o.ring {
		if was.key == e.key && was.version > e.version {
			return true
		}
	}
	return false
}

func (o *streamOrder) record(e shown) {
	o.ring[o.next] = e
	o.next = (o.next + 1) % shownEvents
}
