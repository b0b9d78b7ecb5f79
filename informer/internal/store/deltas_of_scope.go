// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// Open makes the log accept deltas of a new scope. Its number may be that of an
// ended scope to which no delta refers any more.
func (f *DeltaFIFO) Open(id base.ScopeID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*f.mu.log.scope(id) = scopeLog{}
}

// End drops the deltas of these scopes, waiting and future. Only the batch
// popped last may still contain some.
func (f *DeltaFIFO) End(scopes *ScopeSet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.log.end(scopes)
}

// Spoken returns the scopes to which the batch popped last refers.
func (f *DeltaFIFO) Spoken() *ScopeSet {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []base.ScopeID
	f.mu.log.flight.SpeaksOf(func(id base.ScopeID) bool {
		ids = append(ids, id)
		return false
	})
	return ScopesOf(ids...)
}

// SpeaksOf reports whether b refers to a scope of which is is true.
func (b Batch) SpeaksOf(is func(base.ScopeID) bool) bool {
	return slices.ContainsFunc(b.Synced, is) || slices.ContainsFunc(b.Relisted, is) || slices.ContainsFunc(b.Epochs, is) ||
		slices.ContainsFunc(b.Passed, func(p Passed) bool { return is(p.Scope) }) ||
		slices.ContainsFunc(b.Reached, func(r Reached) bool { return is(r.Scope) }) ||
		slices.ContainsFunc(b.Deltas, func(d Delta) bool { return is(d.Scope) })
}

// Without returns b without the ended scopes. b itself stays unchanged: the log
// still reads it.
func (b Batch) Without(ended func(base.ScopeID) bool) Batch {
	return Batch{
		Deltas:   slices.DeleteFunc(slices.Clone(b.Deltas), func(d Delta) bool { return ended(d.Scope) }),
		Reached:  slices.DeleteFunc(slices.Clone(b.Reached), func(r Reached) bool { return ended(r.Scope) }),
		Synced:   slices.DeleteFunc(slices.Clone(b.Synced), ended),
		Relisted: slices.DeleteFunc(slices.Clone(b.Relisted), ended),
		Epochs:   slices.DeleteFunc(slices.Clone(b.Epochs), ended),
		Passed:   slices.DeleteFunc(slices.Clone(b.Passed), func(p Passed) bool { return ended(p.Scope) }),
	}
}

// end blanks the places of these scopes and rebuilds the index, if there is one.
func (l *deltaLog) end(scopes *ScopeSet) {
	for id := range scopes.All() {
		*l.scope(id) = scopeLog{ended: true}
	}
	for at := l.places.Front(); at < l.places.Back(); at++ {
		p := l.places.At(at)
		if !scopes.Has(p.Scope) {
			continue
		}
		if p.mark == isDelta && !p.gone {
			l.uncount(&p.Delta)
		}
		*p = place{Delta: Delta{Scope: p.Scope}, gone: true}
	}
	for l.places.Len() > 0 && l.places.At(l.places.Front()).gone {
		l.places.Pop()
	}
	if l.indexed {
		l.indexed = false
		clear(l.last)
		l.index()
	}
}
