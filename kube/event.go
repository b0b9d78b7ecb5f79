// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kube

// TraceContextAnnotation of an object names the trace that it was written for, by the convention of
// OpenTelemetry's users: JSON with the headers of W3C Trace Context, such as
// {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}.
const TraceContextAnnotation = "opentelemetry.io/trace-context"

// EventType is the kind of a change, as one handler saw it.
type EventType uint8

const (
	// Added is an object that the handler did not know.
	Added EventType = iota + 1
	// Updated is a change of an object that the handler knew.
	Updated
	// Deleted is an object that is gone, or has left the handler's scope.
	Deleted
	// Undecoded is an object with a new version that cannot be decoded. Only
	// handlers with HandlerOptions.Undecodable receive it.
	Undecoded
)

// String returns the type in lower case, as in logs and metrics.
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

// Event is how one object changed since the handler's last event for it. Its
// objects are shared and must not be modified.
type Event[T Object] struct {
	Type EventType
	Key  Key
	// Old is what this handler was last given. Zero for Added. For a deletion,
	// an EveryEvent handler gets the final state instead.
	Old T
	// New is the current state. Zero for Deleted and Undecoded.
	New T
	// Undecodable describes an undecodable object: for an Undecoded, and for a
	// Deleted without Old, which ends an object that the handler never had
	// decoded. Nil otherwise.
	Undecodable *Undecodable
	// Initial: an Added or Undecoded that existed when the handler joined.
	Initial bool
	// Resync: an Updated or Undecoded without a change; the handler's resync
	// period has passed.
	Resync bool
	// Relisted: an Updated or Undecoded without a change; a list after the
	// first has the object unchanged. Only handlers with HandlerOptions.Relists
	// receive it.
	Relisted bool
	// Healed: an Updated; since Old there was a version that could not be
	// decoded, whether or not the handler received it.
	Healed bool
	// FinalStateUnknown: a Deleted whose end the watch missed; Old may not be
	// the object's last state.
	FinalStateUnknown bool
	// LeftScope: a Deleted because the object no longer matches the scope; it
	// may still exist.
	LeftScope bool
	// Own: the informer has the change, and each that is merged with it, from the answer
	// to a write of this process, or a read after one, before its watch had it. What others
	// changed just before that write is a part of it.
	Own bool
}

// Latest returns New, or Old for Deleted and Undecoded. It is zero if the
// handler was never given the object.
func (e Event[T]) Latest() T {
	if e.Type == Deleted || e.Type == Undecoded {
		return e.Old
	}
	return e.New
}
