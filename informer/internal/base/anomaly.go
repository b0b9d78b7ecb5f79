// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

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

// Anomaly is what is wrong with one event.
type Anomaly uint8

const (
	Sound Anomaly = iota
	Doubled
	Late
	Disordered
	OtherKind      // of an item: another kind or apiVersion
	OtherNamespace // of an item: it cannot be in the scope, whatever its state
	Unselected     // of an item: its state does not match the selectors
)

func (a Anomaly) String() string {
	return [...]string{
		Sound: "sound", Doubled: "doubled", Late: "late", Disordered: "out of order",
		OtherKind: "of another kind", OtherNamespace: "of another namespace", Unselected: "not matching the selectors",
	}[a]
}
