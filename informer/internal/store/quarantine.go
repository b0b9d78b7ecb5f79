// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/kube"
)

// Quarantine returns the undecodable objects that filter sees, sorted by key.
func (x *Indexer) Quarantine(filter *ScopeSet) []*kube.Undecodable {
	x.mu.RLock()
	var out []*kube.Undecodable
	for key, u := range x.mu.quarantine {
		if x.mu.rows.At(int(x.mu.at[key])).Scopes.SeenBy(filter) {
			out = append(out, u)
		}
	}
	x.mu.RUnlock()
	slices.SortFunc(out, func(a, b *kube.Undecodable) int { return kube.CompareKeys(a.Key, b.Key) })
	return out
}

func (x *Indexer) trouble(key kube.Key) (*metav1.PartialObjectMetadata, error) {
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
func (x *Indexer) undecodable(s *step, was *kube.Undecodable, r *Row, other bool) *kube.Undecodable {
	err := &kube.UndecodableError{Kind: x.Kind, Key: s.key, Err: s.err, Refused: r.refused}
	u := &kube.Undecodable{Key: s.key, UID: s.uid, Version: s.version, Metadata: s.metadata, Since: time.Now(), Err: err}
	if r.refused && !other && !r.blank {
		err.Last = kube.ParseVersion(r.Object.GetResourceVersion())
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
	Was, Is       *kube.Undecodable // nil: decodable, or there is no object
}

// SeenBy returns the trouble as filter sees it, nil without any.
func (t *Trouble) SeenBy(filter *ScopeSet) (was, is *kube.Undecodable) {
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

// Refused returns the quarantine entry that the transform caused at key, and the decoded
// object that it refuses, or nil.
func (x *Indexer) Refused(key kube.Key) (*kube.Undecodable, kube.Object) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if original := x.mu.originals[key]; original != nil {
		return x.mu.quarantine[key], original
	}
	return nil, nil
}

// Accept stores obj, the transform's later result for a refused object, if u is
// still the key's present state.
func (x *Indexer) Accept(u *kube.Undecodable, obj kube.Object) ([]Change, error) {
	x.turn.Lock()
	defer x.turn.Unlock()
	s := step{input: input{kind: accepted, uid: u.UID, version: u.Version}, key: u.Key, object: obj}
	values, err := x.evaluateLocked(1, func(int) (key kube.Key, obj kube.Object, ok bool) { return s.key, s.object, true })
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
