// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"iter"
	"slices"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/kube"
)

// Present yields what scope holds once the whole log is applied: the state of
// its stream as far as it was pushed. Only the goroutine that pushes for the
// scope calls it.
func (f *DeltaFIFO) Present(scope base.ScopeID) iter.Seq[Delta] {
	return func(yield func(Delta) bool) {
		// The log is read before the Indexer, as in Replacement.Commit, so a
		// delta applied in between is in both.
		f.mu.Lock()
		news, anew := f.mu.log.news(scope)
		f.mu.Unlock()
		for key, k := range f.known.KnownIn(scope) {
			if n, ok := news[key]; ok && (anew || n.UID == k.UID || n.Version >= k.Version) {
				continue
			}
			delete(news, key)
			d := Delta{Type: Replaced, Key: key, Scope: scope, Object: k.Object, UID: k.UID, Version: k.Version}
			if k.Undecodable {
				d = f.troubled(d)
			}
			if !yield(d) {
				return
			}
		}
		for _, n := range news {
			if n.Type == Deleted {
				continue
			}
			n.Type = Replaced
			if !yield(n) {
				return
			}
		}
	}
}

// troubled returns d for an object that cannot be decoded, or for its healed
// state.
func (f *DeltaFIFO) troubled(d Delta) Delta {
	if metadata, err := f.known.trouble(d.Key); err != nil {
		var none kube.Object
		d.Object, d.Err, d.Metadata = none, err, metadata
	} else if k, held := f.known.knownAs(d.Key, d.Scope); held {
		d.Object, d.UID, d.Version = k.Object, k.UID, k.Version
	}
	return d
}

// news returns the last waiting delta of each key of scope, except Syncs. anew:
// a new epoch is among them.
func (l *deltaLog) news(scope base.ScopeID) (news map[kube.Key]Delta, anew bool) {
	news = make(map[kube.Key]Delta)
	for _, d := range l.flight.Deltas {
		if d.Scope == scope && d.Type != Sync {
			news[d.Key] = d
		}
	}
	anew = slices.Contains(l.flight.Epochs, scope)
	for i := l.places.Front(); i < l.places.Back(); i++ {
		switch p := l.places.At(i); {
		case p.Scope != scope || p.gone:
		case p.mark == epoch:
			anew = true
		case p.mark == isDelta && p.Type != Sync:
			news[p.Key] = p.Delta
		}
	}
	return news, anew
}
