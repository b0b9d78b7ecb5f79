// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package revisions is the history of a store: the current objects in the order of their
// keys, and the changes that led to them, each with its revision. It has no lock; that of
// package store guards it.
package revisions

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Change is what one revision did: Before is nil for a creation, After for a deletion.
type Change struct {
	Revision      int64
	Resource      schema.GroupResource
	Key           types.NamespacedName
	Before, After *object.Object
	Gone          *object.Object // of a deletion: Before, with its version
}

// Log is the whole store: one counter of revisions for all kinds, the current objects, and
// the changes since the last compaction. It is pure: no lock, no clock.
type Log struct {
	Revision  int64
	Compacted int64    // changes up to this revision are gone
	Changes   []Change // with revision > Compacted, ascending
	Objects   map[schema.GroupResource]*objectMap
	sharing   *sharing
}

// objectMap has the objects of one kind in the order of the store.
type objectMap = tree[types.NamespacedName, *object.Object]

// NewLog returns an empty history.
func NewLog() *Log {
	// As in etcd, the empty store has revision 1.
	return &Log{Revision: 1, Compacted: 1, Objects: map[schema.GroupResource]*objectMap{}, sharing: newSharing()}
}

// of returns the current objects of r.
func (l *Log) of(r schema.GroupResource) *objectMap {
	known := l.Objects[r]
	if known == nil {
		known = newTree[types.NamespacedName, *object.Object](CompareKeys)
		l.Objects[r] = known
	}
	return known
}

// Get returns an object as it is now, or nil.
func (l *Log) Get(r schema.GroupResource, key types.NamespacedName) *object.Object {
	obj, _ := l.of(r).Get(key)
	return obj
}

// Put stores obj under key at the next revision, and returns it with that resourceVersion.
func (l *Log) Put(r schema.GroupResource, key types.NamespacedName, obj *object.Object) *object.Object {
	stored := obj.At(l.Revision + 1)
	l.sharing.share(stored.Fields)
	return l.write(r, key, stored)
}

// Remove deletes the object of key at the next revision. It returns the last state with the
// resourceVersion of the deletion, or nil if there was no object.
func (l *Log) Remove(r schema.GroupResource, key types.NamespacedName) *object.Object {
	old := l.Get(r, key)
	if old == nil {
		return nil
	}
	l.write(r, key, nil)
	return l.Changes[len(l.Changes)-1].Gone
}

func (l *Log) write(r schema.GroupResource, key types.NamespacedName, after *object.Object) *object.Object {
	l.Revision++
	c := Change{Revision: l.Revision, Resource: r, Key: key, Before: l.Get(r, key), After: after}
	if after == nil && c.Before != nil {
		c.Gone = c.Before.At(l.Revision)
	}
	l.Changes = append(l.Changes, c)
	l.Set(r, key, after)
	return after
}

// Set replaces an object without a new revision; nil removes it.
func (l *Log) Set(r schema.GroupResource, key types.NamespacedName, obj *object.Object) {
	if obj == nil {
		l.of(r).Delete(key)
		return
	}
	l.of(r).Set(key, obj)
}

// List returns the objects of r as of a revision, in the order of their keys. It returns
// false if the revision is compacted or in the future.
func (l *Log) List(r schema.GroupResource, revision int64) ([]*object.Object, bool) {
	v, ok := l.At(r, revision)
	if !ok {
		return nil, false
	}
	return v.Take(Everything, v.Count(Everything)), true
}

// All returns the current objects, each as its creation, in the order of kinds and keys.
func (l *Log) All() (out []Change) {
	resources := slices.SortedFunc(maps.Keys(l.Objects), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	for _, r := range resources {
		objects, _ := l.List(r, l.Revision)
		for _, obj := range objects {
			out = append(out, Change{Revision: obj.Revision(), Resource: r, Key: obj.Key(), After: obj})
		}
	}
	return out
}

// Since returns the changes after a revision, up to another. It returns false if some of
// them are compacted.
func (l *Log) Since(after, upTo int64) ([]Change, bool) {
	if after < l.Compacted {
		return nil, false
	}
	from, _ := slices.BinarySearchFunc(l.Changes, after+1, byRevision)
	to, _ := slices.BinarySearchFunc(l.Changes, upTo+1, byRevision)
	return l.Changes[from:max(from, to)], true
}

func byRevision(c Change, revision int64) int { return cmp.Compare(c.Revision, revision) }

// Compact drops the history up to a revision. A future revision counts as the newest.
func (l *Log) Compact(revision int64) {
	revision = min(revision, l.Revision)
	if revision <= l.Compacted {
		return
	}
	n, _ := slices.BinarySearchFunc(l.Changes, revision+1, byRevision)
	l.Changes = slices.Clone(l.Changes[n:])
	l.Compacted = revision
}

// Rewind undoes the last n revisions, as far as they are not compacted: the store after a
// restore from a backup. The counter goes back too. It returns the changes that this made,
// each with the revision to which it led back.
func (l *Log) Rewind(n int) (undone []Change) {
	for ; n > 0 && len(l.Changes) > 0; n-- {
		last := l.Changes[len(l.Changes)-1]
		l.Changes = l.Changes[:len(l.Changes)-1]
		l.Set(last.Resource, last.Key, last.Before)
		l.Revision = last.Revision - 1
		undone = append(undone, Change{Revision: l.Revision, Resource: last.Resource, Key: last.Key, Before: last.After, After: last.Before})
	}
	return undone
}
