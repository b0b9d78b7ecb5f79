// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package source turns what happens into keys of work: events of an informer,
// of objects that others own, from outside the cluster, or of the clock.
//
//	informer ──Event[T]──▶ predicates ──▶ mapper ──K, Cause──▶ add ──▶ workqueue
//	                          │ drop        │ old object, new object
//	                          ▼             ▼
//	                       counted       each key once
//
//	Channel ──K──▶ add          Ticker ──K, each period──▶ add
//
//	any Source ──K──▶ Debounce, which waits for silence ──K──▶ add
//
// A Source names keys and no more. It is level-triggered: a key says that there
// is something to look at, not what happened. The Cause that goes with it is for
// people.
//
//	c.Watch(source.Kind(websites, source.Self))
//	c.Watch(source.Owned(deployments, websites))
//	c.Watch(source.OwnedByAny(pods, websites, source.Or(source.SpecChanged, source.LabelsChanged)))
//
// # Promises
//
//	R1  each event leads to a reconcile that begins after the store shows it;
//	    here: the informer stores first and then tells, and each event that the
//	    predicates let pass adds its keys, those of the old object and those of
//	    the new one, before the next event is taken; a Debounce has them wait
//	W10 a Debounce adds a key no later than the longest wait after its source
//	    named it, and not before the quiet time has passed since it named it last,
//	    unless the longest wait has; no key that was named is lost while it runs
//
// # What predicates can never drop
//
// A predicate names an interest, and the source derives a filter from it. These
// pass whatever the interests say, also inside And, Or and Not:
//
//   - a deletion;
//   - a version that cannot be decoded, and the one that heals it;
//   - a deletionTimestamp that appears;
//   - a change of finalizers or of owner references, and another UID.
//
// An added object and a resync pass each named interest too: at a start every
// object is an addition, and a resync is asked for in order to look again. Only
// Where keeps objects out for good, since it speaks of the object and not of the
// change; an update passes it when the old or the new object does, so that an
// object that leaves is seen to leave. What was dropped is counted in Snapshot.
//
// # Objects that cannot be decoded
//
// Each version of an object that cannot be decoded is an event, and so are its
// healing and its end: a reconcile of its key runs, reads an
// *informer.UndecodableError, and returns it, which the controller takes as
// terminal until the next event. Mappers are asked for the last state that could
// be decoded and for the metadata, as a *metav1.PartialObjectMetadata: Self and
// the owners need no more. Mapped needs the type, and so the last state. Where
// judges the last state too, and lets pass what it knows nothing of.
//
// # Panics
//
// A predicate that panics counts as passed. A mapper that panics costs the keys
// that this one object of this one event would still have named. Both are counted
// in Snapshot and logged with their stack, and the source goes on.
//
// # Concurrency
//
// Constructors start nothing. Run blocks, and returns when all that it started has
// ended; it runs once. A Debounce has one goroutine beside its source's, for as long
// as it runs. Predicates and mappers are called by one goroutine per
// source at a time; they must not block, as later events wait for them, and Run
// waits for them when it ends. Every other method is safe for concurrent use.
//
// # Testing
//
// Sources are made for [testing/synctest]. The package sourcetest holds a Source
// of your own to the contract.
package source
