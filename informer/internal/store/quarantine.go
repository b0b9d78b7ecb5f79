// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// Quarantine is what filter sees of the objects that cannot be decoded, sorted
// by key.
func (x *Indexer[T]) Quarantine(filter *ScopeSet) []*base.Undecodable {
	x.mu.RLock()
	var out []*base.Undecodable
	for key, u := range x.mu.bad {
		if x.mu.rows.At(int(x.mu.at[key])).Scopes.SeenBy(filter) {
			out = append(out, u)
		}
	}
	x.mu.RUnlock()
	slices.SortFunc(out, func(a, b *base.Undecodable) int { return base.CompareKeys(a.Key, b.Key) })
	return out
}

func (x *Indexer[T]) trouble(key base.Key) (*metav1.PartialObjectMetadata, error) {
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
func (x *Indexer[T]) undecodable(s *step[T], was *base.Undecodable, r *Row[T], other bool) *base.Undecodable {
	err := &base.UndecodableError{Kind: x.Kind, Key: s.key, Err: s.err, Refused: r.refused}
	u := &base.Undecodable{Key: s.key, UID: s.uid, Version: s.version, Metadata: s.metadata, Since: time.Now(), Err: err}
	if r.refused {
		u.Original = s.original
		if !other && !r.blank {
			err.Last = base.ParseVersion(r.Object.GetResourceVersion())
		}
	}
	if was != nil && was.UID == u.UID {
		u.Since = was.Since
	}
	return u
}

// Trouble is what a change does to a key that could not be decoded before it,
// or cannot after it.
type Trouble struct {
	// before and after are the scopes that hold the key, decodable or not.
	Before, After *ScopeSet
	Was, Is       *base.Undecodable // nil: it can be decoded, or there is no object
}

// SeenBy is the trouble as filter sees it. A change without any has nil.
func (t *Trouble) SeenBy(filter *ScopeSet) (was, is *base.Undecodable) {
	if t == nil {
		return nil, nil
	}
	if t.Before.SeenBy(filter) {
		was = t.Was
	}
	if t.After.SeenBy(filter) {
		is = t.Is
	}
	return was, is
}

// Refused is what is in quarantine at key because of the transform; nil: nothing.
func (x *Indexer[T]) Refused(key base.Key) *base.Undecodable {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if u := x.mu.bad[key]; u != nil && u.Original != nil {
		return u
	}
	return nil
}

// Accept stores obj, which the transform has made of what it refused, if u still
// is what is known of its key.
func (x *Indexer[T]) Accept(u *base.Undecodable, obj T) ([]Change[T], error) {
	x.turn.Lock()
	defer x.turn.Unlock()
	s := step[T]{news: news{kind: accepted, uid: u.UID, version: u.Version}, key: u.Key, object: obj}
	values, err := x.evaluateLocked(1, func(int) (key base.Key, obj T, ok bool) { return s.key, s.object, true })
	defer clear(values)
	s.values = values
	changes := x.roomLocked(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.bad[u.Key] != u {
		return changes, nil
	}
	return x.takeLocked(&s, changes), err
}
