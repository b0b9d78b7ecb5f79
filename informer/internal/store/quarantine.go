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

// Quarantine returns the undecodable objects that filter sees, sorted by key.
func (x *Indexer) Quarantine(filter *ScopeSet) []*base.Undecodable {
	x.mu.RLock()
	var out []*base.Undecodable
	for key, u := range x.mu.quarantine {
		if x.mu.rows.At(int(x.mu.at[key])).Scopes.SeenBy(filter) {
			out = append(out, u)
		}
	}
	x.mu.RUnlock()
	slices.SortFunc(out, func(a, b *base.Undecodable) int { return base.CompareKeys(a.Key, b.Key) })
	return out
}

func (x *Indexer) trouble(key base.Key) (*metav1.PartialObjectMetadata, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	u := x.mu.quarantine[key]
	if u == nil {
		return nil, nil
	}
	return u.Metadata, errors.Unwrap(u.Err)
}

// undecodable returns the quarantine entry for s. was is the previous entry, if
// any. r is the row; other: its object has another UID.
func (x *Indexer) undecodable(s *step, was *base.Undecodable, r *Row, other bool) *base.Undecodable {
	err := &base.UndecodableError{Kind: x.Kind, Key: s.key, Err: s.err, Refused: r.refused}
	u := &base.Undecodable{Key: s.key, UID: s.uid, Version: s.version, Metadata: s.metadata, Since: time.Now(), Err: err}
	if r.refused {
		u = base.NewRefused(*u, s.original)
		if !other && !r.blank {
			err.Last = base.ParseVersion(r.Object.GetResourceVersion())
		}
	}
	if was != nil && was.UID == u.UID {
		u.Since = was.Since
	}
	return u
}

// Trouble is the effect of a change on a key that is undecodable before it or
// after it.
type Trouble struct {
	// Before and After are the scopes that hold the key, decodable or not.
	Before, After *ScopeSet
	Was, Is       *base.Undecodable // nil: decodable, or there is no object
}

// SeenBy returns the trouble as filter sees it, nil without any.
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

// Refused returns the quarantine entry that the transform caused at key, or
// nil.
func (x *Indexer) Refused(key base.Key) *base.Undecodable {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if u := x.mu.quarantine[key]; u != nil && base.RefusedObject(u) != nil {
		return u
	}
	return nil
}

// Accept stores obj, the transform's later result for a refused object, if u is
// still the key's present state.
func (x *Indexer) Accept(u *base.Undecodable, obj base.Object) ([]Change, error) {
	x.turn.Lock()
	defer x.turn.Unlock()
	s := step{input: input{kind: accepted, uid: u.UID, version: u.Version}, key: u.Key, object: obj}
	values, err := x.evaluateLocked(1, func(int) (key base.Key, obj base.Object, ok bool) { return s.key, s.object, true })
	defer clear(values)
	s.values = values
	changes := x.roomLocked(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.quarantine[u.Key] != u {
		return changes, nil
	}
	return x.takeLocked(&s, changes), err
}
