// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"slices"

	"github.com/flyball-dev/flyball/internal/ownevents"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/kube"
)

// quiet removes the keys that the event need not wake, in place.
func (f *feed[T, K]) quiet(e kube.Event[kube.Object], keys []K, cause Cause) []K {
	if f.filter.Ledger == nil && f.filter.Absent == nil {
		return keys
	}
	step, plain := stepOf(e)
	step.Kind = f.source.informer.Kind().GroupKind()
	return slices.DeleteFunc(keys, func(key K) bool {
		if f.filter.Absent != nil && f.filter.Absent(key) {
			f.source.absent.Add(1)
			return true
		}
		if !plain || f.filter.Ledger == nil {
			return false
		}
		own, later := f.filter.Ledger.Classify(key, step, func(own bool) { f.late(e, key, cause, own) })
		if own {
			f.omitted(e.Key, key)
		}
		return own || later
	})
}

// late decides on a key of an earlier event, unless Run has ended.
func (f *feed[T, K]) late(e kube.Event[kube.Object], key K, cause Cause, own bool) {
	if !f.calls.Begin() {
		return
	}
	defer f.calls.End()
	switch {
	case own:
		f.omitted(e.Key, key)
		return
	case f.filter.Absent != nil && f.filter.Absent(key):
		f.source.absent.Add(1)
		return
	}
	f.explain(&cause, e)
	f.give(key, cause)
}

// omitted counts an event of the own write of a key's reconcile, which the key need not hear of,
// and reports it to a simulation.
func (f *feed[T, K]) omitted(of Key, key K) {
	f.source.own.Add(1)
	if f.sim != nil {
		f.sim.Note(simhook.Note{What: simhook.Omitted, Kind: f.source.informer.Kind().Kind, Name: f.source.name, Key: of.String(), Text: fmt.Sprint(key)})
	}
}

// give adds a key. A resync changes nothing; anything else is news of others.
func (f *feed[T, K]) give(key K, cause Cause) {
	if f.filter.Ledger != nil && !cause.Resync {
		f.filter.Ledger.News(key)
	}
	f.source.keys.Add(1)
	f.add(key, cause)
}

// recordDropped records an event that a predicate has dropped. A resync changes nothing.
func (f *feed[T, K]) recordDropped(e kube.Event[kube.Object]) {
	if f.filter.Ledger == nil || e.Resync {
		return
	}
	step, plain := stepOf(e)
	step.Kind = f.source.informer.Kind().GroupKind()
	f.filter.Ledger.Dropped(step, plain)
}

// stepOf returns the step from the state that the handler was last given to the present one.
// plain: the event is no more than that.
func stepOf(e kube.Event[kube.Object]) (step ownevents.Write, plain bool) {
	if e.Initial || e.Resync || e.Relisted || e.Healed || e.LeftScope || e.Undecodable != nil {
		return step, false
	}
	step.Key = e.Key
	switch {
	case e.Type == kube.Deleted && e.Old != nil:
		step.UID, step.From, step.Gone = e.Old.GetUID(), kube.ParseVersion(e.Old.GetResourceVersion()), true
		return step, step.From != 0
	case e.New == nil:
		return step, false
	case e.Old != nil:
		if e.Old.GetUID() != e.New.GetUID() {
			return step, false
		}
		if step.From = kube.ParseVersion(e.Old.GetResourceVersion()); step.From == 0 {
			return step, false
		}
	}
	step.UID, step.To = e.New.GetUID(), kube.ParseVersion(e.New.GetResourceVersion())
	return step, step.To != 0
}
