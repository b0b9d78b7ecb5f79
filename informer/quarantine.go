// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Undecodable is an object in quarantine: it exists, but what the server holds
// cannot be decoded, or the informer's transform refuses it. It is shared and
// must not be changed.
type Undecodable struct {
	Key     Key
	UID     types.UID
	Version Version
	// Metadata of the object; nil when it cannot be read in full either.
	Metadata *metav1.PartialObjectMetadata
	// Since when the key is in quarantine, with this version or another.
	Since time.Time
	// Err says why: the *UndecodableError that Get of the key returns.
	Err error

	original any // what the transform refuses, as it was decoded; nil: it does not
}

// Undecodable yields the objects of the Lister's scopes that cannot be decoded,
// as they were at one moment, when the loop began, sorted by key.
func (l Lister[T]) Undecodable() iter.Seq[Undecodable] {
	return func(yield func(Undecodable) bool) {
		if l.v == nil {
			return
		}
		_, entries := look(l.v.sight, func() []*Undecodable { return l.v.store.quarantine(l.v.sight.Load().scopes) })
		for _, u := range entries {
			if !yield(*u) {
				return
			}
		}
	}
}

// quarantine is what filter sees of the objects that cannot be decoded, sorted
// by key.
func (x *Indexer[T]) quarantine(filter *scopeSet) []*Undecodable {
	x.mu.RLock()
	var out []*Undecodable
	for key, u := range x.mu.bad {
		if x.mu.rows.At(int(x.mu.at[key])).scopes.seenBy(filter) {
			out = append(out, u)
		}
	}
	x.mu.RUnlock()
	slices.SortFunc(out, func(a, b *Undecodable) int { return compareKeys(a.Key, b.Key) })
	return out
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (x *Indexer[T]) trouble(key Key) (*metav1.PartialObjectMetadata, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	u := x.mu.bad[key]
	if u == nil {
		return nil, nil
	}
	return u.Metadata, errors.Unwrap(u.Err)
}

// undecodable is s as an entry of the quarantine. was is the one before, if any,
// and r the row, whose object is of another UID if other.
func (x *Indexer[T]) undecodable(s *step[T], was *Undecodable, r *row[T], other bool) *Undecodable {
	err := &UndecodableError{Kind: x.kind, Key: s.key, Err: s.err, Refused: r.refused}
	u := &Undecodable{Key: s.key, UID: s.uid, Version: s.version, Metadata: s.metadata, Since: time.Now(), Err: err}
	if r.refused {
		u.original = s.original
		if !other && !r.blank {
			err.Last = ParseVersion(r.object.GetResourceVersion())
		}
	}
	if was != nil && was.UID == u.UID {
		u.Since = was.Since
	}
	return u
}

// trouble is what a change does to a key that could not be decoded before it,
// or cannot after it.
type trouble struct {
	// before and after are the scopes that hold the key, decodable or not.
	before, after *scopeSet
	was, is       *Undecodable // nil: it can be decoded, or there is no object
}

// seenBy is the trouble as filter sees it. A change without any has nil.
func (t *trouble) seenBy(filter *scopeSet) (was, is *Undecodable) {
	if t == nil {
		return nil, nil
	}
	if t.before.seenBy(filter) {
		was = t.was
	}
	if t.after.seenBy(filter) {
		is = t.is
	}
	return was, is
}
