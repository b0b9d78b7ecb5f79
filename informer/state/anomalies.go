// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package state

// Anomalies counts what one scope received that a correct server does not send.
// It does no harm: the newest version of an object wins, and objects outside
// the scope are dropped. High counts point to a problem in the server or a
// proxy before it.
type Anomalies struct {
	// Doubled events repeat a version of an object.
	Doubled int
	// Late events are older than the known state of their object. They are
	// ignored.
	Late int
	// Disordered events follow a newer version of another object. They are
	// applied.
	Disordered int
	// OtherKind objects have another kind or apiVersion than requested. They
	// are dropped and do not affect the object of their name.
	OtherKind int
	// OutOfScope objects are in another namespace than requested, have a
	// namespace although the kind is cluster-scoped or the reverse, or do not
	// match the selectors, as far as the client can evaluate them. They are
	// dropped; a held object that no longer matches leaves the scope.
	OutOfScope int
	// Older lists are older than the version requested, or than one seen
	// before. They are refused.
	Older int
}

// Total returns the sum of all counts.
func (a Anomalies) Total() int {
	return a.Doubled + a.Late + a.Disordered + a.OtherKind + a.OutOfScope + a.Older
}
