// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "slices"

// Anomalies counts what one scope's lists and watches bring that no sound server
// sends. It is harmless, since the newest version of an object wins and what is
// not of the scope is not taken, but where there is much of it the server or
// something before it is to be looked at.
type Anomalies struct {
	// Doubled events: the same version of the same object again.
	Doubled int
	// Late events: older than what is known of their object. They are no news.
	Late int
	// Disordered events: the stream had shown a newer version before, of another
	// object. They count.
	Disordered int
	// OtherKind objects, of a list or watch: of another kind or apiVersion than was
	// asked for. They are not taken, and harm no object of their name.
	OtherKind int
	// OutOfScope objects, of a list or watch: in another namespace than was asked
	// for, with a namespace though the kind is cluster-scoped, or the reverse, or
	// not matching the selectors, as far as that can be told. They are not taken; an
	// object that is held and no longer matches leaves the scope.
	OutOfScope int
	// Older lists: older than the version that was asked for, or than one that was
	// seen before. They are refused.
	Older int
}

// Total is the number of all of them.
func (a Anomalies) Total() int {
	return a.Doubled + a.Late + a.Disordered + a.OtherKind + a.OutOfScope + a.Older
}

// anomaly is what is wrong with one event.
type anomaly uint8

const (
	sound anomaly = iota
	doubled
	late
	disordered
	otherKind      // of an item: another kind or apiVersion
	otherNamespace // of an item: it cannot be in the scope, whatever its state
	unselected     // of an item: its state does not match the selectors
)

func (a anomaly) String() string {
	return [...]string{
		sound: "sound", doubled: "doubled", late: "late", disordered: "out of order",
		otherKind: "of another kind", otherNamespace: "of another namespace", unselected: "not matching the selectors",
	}[a]
}

// count adds one of a kind, and says whether it is the first.
func (a *Anomalies) count(kind anomaly) (first bool) {
	var n *int
	switch kind {
	case doubled:
		n = &a.Doubled
	case late:
		n = &a.Late
	case disordered:
		n = &a.Disordered
	case otherKind:
		n = &a.OtherKind
	case otherNamespace, unselected:
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
	key     Key
	version Version
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
func (o *streamOrder) judge(e shown, newest Version, known func(Key) Version) anomaly {
	if e.version == 0 || newest == 0 || e.version > newest {
		return sound
	}
	k := known(e.key)
	switch {
	case o.stale(e):
		return late
	case slices.Contains(o.ring[:], e):
		return doubled
	case k == e.version && e.ended:
		return sound // some servers give an end the object's last version
	case k == e.version:
		return doubled
	case e.version == newest:
		return sound // one revision may change several objects: a lease that ends
	case k > e.version:
		return late
	}
	return disordered
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
