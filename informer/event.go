// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

// EventType says what happened to an object as one handler saw it.
type EventType uint8

const (
	// Added is an object that the handler did not know.
	Added EventType = iota + 1
	// Updated is a change of an object that the handler knew.
	Updated
	// Deleted is an object that is gone, or left the handler's scope.
	Deleted
	// Undecoded is an object of which another version cannot be decoded.
	// Only a handler that asks for it in its HandlerOptions is told.
	Undecoded
)

// String is the type in lower case, as logs and metrics show it.
func (t EventType) String() string {
	switch t {
	case Added:
		return "added"
	case Updated:
		return "updated"
	case Deleted:
		return "deleted"
	case Undecoded:
		return "undecodable"
	}
	return "unknown"
}

// Event says how one object changed since the handler was last told of it.
// Objects in it are shared: they are read, never changed.
type Event[T Object] struct {
	Type EventType
	Key  Key
	// Old is what this handler was last given. Zero when Added. A deletion that
	// an EveryEvent handler is told of has the final state instead.
	Old T
	// New is the current state. Zero when Deleted and when Undecodable.
	New T
	// Undecodable says what is known of an object that cannot be decoded: of an
	// Undecoded, and of a Deleted without Old, which ends an object
	// that the handler was only ever told to be undecodable. Nil otherwise.
	Undecodable *Undecodable
	// Initial: Added or Undecodable, and part of what was there when the handler
	// joined.
	Initial bool
	// Resync: Updated or Undecodable, nothing changed; the handler's resync period
	// has passed.
	Resync bool
	// Relisted: Updated or Undecodable, nothing changed; a list after the first
	// one has the object as it was. Only a handler that asks for it in its
	// HandlerOptions is told.
	Relisted bool
	// Healed: Updated, and since Old there was a version that could not be decoded,
	// whether the handler was told of it or not.
	Healed bool
	// FinalStateUnknown: Deleted, but the watch missed the end; Old may not be
	// the last state the object had.
	FinalStateUnknown bool
	// LeftScope: Deleted, because the object no longer matches the scope; it
	// may still exist.
	LeftScope bool
}

// Latest is New, or Old when Deleted or Undecodable. It is zero where the
// handler was never given an object.
func (e Event[T]) Latest() T {
	if e.Type == Deleted || e.Type == Undecoded {
		return e.Old
	}
	return e.New
}
