// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package source turns events into keys of work: events of an informer, of
// owned objects, from outside the cluster, or of the clock.
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
// A Source only provides keys. It is level-triggered: a key means that there is
// something to look at, not what happened. The Cause of a key is for people.
//
//	c.Watch(source.Kind(websites, source.Self))
//	c.Watch(source.Owned(deployments, websites))
//	c.Watch(source.OwnedByAny(pods, websites, source.Or(source.SpecChanged, source.LabelsChanged)))
//
// # Promises
//
//	R1  each event leads to a reconcile that begins after the store shows it;
//	    here: the informer stores an object before it delivers the event, and each
//	    event that passes the predicates adds the keys of the old and of the new
//	    object before the next event is taken, or when a reconcile in progress
//	    ends; a Debounce delays them; a controller may omit its own writes
//	R27 Owned adds only keys that an owner can have: it waits until discovery has
//	    reported whether the owners are namespaced
//	W10 a Debounce adds a key no later than the longest wait after its source
//	    added it, and not before the quiet time has passed since the source last
//	    added it, unless the longest wait has; no key is lost while it runs
//
// # Events that predicates cannot drop
//
// A predicate names an interest, from which the source derives a filter. These
// events pass regardless of the interests, also inside And, Or and Not:
//
//   - a deletion;
//   - a version that cannot be decoded, and the one that heals it;
//   - a deletionTimestamp that appears;
//   - a change of finalizers, owner references or UID.
//
// Additions and resyncs also pass each interest: at a start every object is an
// addition, and a resync is meant to look again. Only Where excludes objects
// permanently, since it concerns the object and not the change. An update
// passes Where if the old or the new object does, so that objects that leave
// are noticed. Snapshot counts the dropped events.
//
// # Objects that cannot be decoded
//
// Each undecodable version of an object is an event, and so are its healing and
// its end: a reconcile of its key runs, reads a *kube.UndecodableError and
// returns it, which the controller treats as terminal until the next event.
// Mappers get the last decodable state and the metadata, as a
// *metav1.PartialObjectMetadata, which is enough for Self and the owners.
// Mapped needs the type, and so gets only the last decodable state. Where also
// evaluates that state, and passes objects without one.
//
// # Panics
//
// A predicate that panics counts as passed. If a mapper panics, the remaining
// keys of that object of the event are lost. Both are counted in Snapshot and
// logged with their stack, and the source continues.
//
// # Concurrency
//
// Constructors start nothing. Run blocks, and returns when everything that it
// started has ended; it runs once. A Debounce has one goroutine besides its
// source's while it runs. Predicates and mappers are called by one goroutine
// per source at a time. They must not block: later events wait for them, and so
// does the end of Run. Every other method is safe for concurrent use.
//
// # Testing
//
// Sources work in a [testing/synctest] bubble. Package sourcetest checks the
// contract for your own sources.
package source
