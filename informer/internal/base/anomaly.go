// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

// Anomaly classifies one event.
type Anomaly uint8

const (
	Sound Anomaly = iota
	Doubled
	Late
	Disordered
	OtherKind      // of an item: another kind or apiVersion
	OtherNamespace // of an item: it cannot be in the scope in any state
	Unselected     // of an item: its state does not match the selectors
	Foreign        // of an item: it is of a shard that is not held
)

func (a Anomaly) String() string {
	return [...]string{
		Sound: "sound", Doubled: "doubled", Late: "late", Disordered: "out of order",
		OtherKind: "of another kind", OtherNamespace: "of another namespace", Unselected: "not matching the selectors",
		Foreign: "of another shard",
	}[a]
}
