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

// End drops the deltas of a scope, waiting and future. Only the batch popped
// last may still contain some.
func (f *DeltaFIFO) End(id base.ScopeID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.log.end(id)
}

// SpeaksOf reports whether the batch popped last refers to a scope.
func (f *DeltaFIFO) SpeaksOf(id base.ScopeID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.log.flight.SpeaksOf(id)
}

func (b Batch) SpeaksOf(id base.ScopeID) bool {
	return slices.Contains(b.Synced, id) || slices.Contains(b.Relisted, id) || slices.Contains(b.Epochs, id) ||
		slices.ContainsFunc(b.Passed, func(p Passed) bool { return p.Scope == id }) ||
		slices.ContainsFunc(b.Reached, func(r Reached) bool { return r.Scope == id }) ||
		slices.ContainsFunc(b.Deltas, func(d Delta) bool { return d.Scope == id })
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

// end blanks the places of a scope and rebuilds the index, if there is one.
func (l *deltaLog) end(id base.ScopeID) {
	*l.scope(id) = scopeLog{ended: true}
	for at := l.places.Front(); at < l.places.Back(); at++ {
		p := l.places.At(at)
		if p.Scope != id {
			continue
		}
		if p.mark == isDelta && !p.gone {
			l.uncount(&p.Delta)
		}
		*p = place{Delta: Delta{Scope: id}, gone: true}
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
