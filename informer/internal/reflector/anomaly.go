// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"slices"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// countAnomaly adds one of a kind, and says whether it is the first.
func countAnomaly(a *base.Anomalies, kind base.Anomaly) (first bool) {
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

// shownEvents of a stream that are remembered.
const shownEvents = 64

// shown is one event of the stream.
type shown struct {
	key     base.Key
	version base.Version
	ended   bool
}

// streamOrder holds the events of one scope's watches against each other. It
// remembers the last of them. Initial events of a streaming list, which have no
// order, are not its matter. It is pure.
type streamOrder struct {
	ring [shownEvents]shown
	next int
}

// judge says what is wrong with e, when the stream, or the one before it, has
// shown newest. known asks for the version of its key that is held or on its
// way, 0 for none.
func (o *streamOrder) judge(e shown, newest base.Version, known func(base.Key) base.Version) base.Anomaly {
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
		return base.Sound // some servers give an end the object's last version
	case k == e.version:
		return base.Doubled
	case e.version == newest:
		return base.Sound // one revision may change several objects: a lease that ends
	case k > e.version:
		return base.Late
	}
	return base.Disordered
}

// stale says whether a newer event of the same key is remembered, so that e
// must not even count where nothing is held of the key any more.
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

// note remembers e.
func (o *streamOrder) note(e shown) {
	o.ring[o.next] = e
	o.next = (o.next + 1) % shownEvents
}
