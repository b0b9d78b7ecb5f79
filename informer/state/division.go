// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package state

import "fmt"

// Division is the part of a kind's objects that an informer holds: those of some shards. Zero: the
// factory divides nothing, or it is not known yet whether it divides the kind.
type Division struct {
	Form Form
	// By is what decides the shard of an object: "namespace", "uid" or "owner". Count is the number
	// of all shards, and Held are those that are held, such as "0-7,9".
	By    string
	Count int
	Held  string
	// Foreign counts the objects and events of other shards that were dropped before they were
	// decoded, and ForeignBytes their size as sent.
	Foreign, ForeignBytes uint64
}

// Form is who selects the objects of the held shards.
type Form string

const (
	// FormWhole: the kind is not divided.
	FormWhole Form = "whole"
	// FormServer: the server selects them, by the shardSelector of KEP-5866.
	FormServer Form = "server"
	// FormWire: the server sends those of all shards, and the informer drops what is of others
	// before it is decoded.
	FormWire Form = "wire"
)

// String describes the division, such as "shards 0-7 of 32 by uid (server)".
func (d Division) String() string {
	switch {
	case d.Count == 0:
		return string(d.Form)
	case d.Held == "":
		return fmt.Sprintf("no shard of %d by %s (%s)", d.Count, d.By, d.Form)
	}
	return fmt.Sprintf("shards %s of %d by %s (%s)", d.Held, d.Count, d.By, d.Form)
}
