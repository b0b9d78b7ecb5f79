// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package revisions is the store: the objects there are, in order of their keys,
// and the history of changes behind them, each with its revision. It has no lock
// of its own; the server's guards it.
package revisions

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/btree"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Change is what one revision did: before is nil for a creation, after for a
// deletion.
type Change struct {
	Revision      int64
	Resource      schema.GroupResource
	Key           types.NamespacedName
	Before, After *object.Object
	Gone          *object.Object // of a deletion: before, with its version
}

// Log is all that is stored: one counter of revisions for all kinds,
// the objects as they are now, and the changes that led there, back to the
// last compaction. It is pure: no lock, no clock.
type Log struct {
	Revision  int64
	Compacted int64    // what was before this revision can no longer be told
	Changes   []Change // with revision > compacted, ascending
	Objects   map[schema.GroupResource]*objectMap
	sharing   *sharing
}

// objectMap is the objects of one kind in the order of the store.
type objectMap = btree.Map[types.NamespacedName, *object.Object]

func NewLog() *Log {
	// Revision 1 is the store as it begins, as in etcd.
	return &Log{Revision: 1, Compacted: 1, Objects: map[schema.GroupResource]*objectMap{}, sharing: newSharing()}
}

// of is the objects of r as they are now.
func (l *Log) of(r schema.GroupResource) *objectMap {
	known := l.Objects[r]
	if known == nil {
		known = btree.New[types.NamespacedName, *object.Object](CompareKeys)
		l.Objects[r] = known
	}
	return known
}

func (l *Log) Get(r schema.GroupResource, key types.NamespacedName) *object.Object {
	obj, _ := l.of(r).Get(key)
	return obj
}

// Put stores obj under key at the next revision, and returns it with that
// resourceVersion.
func (l *Log) Put(r schema.GroupResource, key types.NamespacedName, obj *object.Object) *object.Object {
	stored := obj.At(l.Revision + 1)
	l.sharing.share(stored.Fields)
	return l.write(r, key, stored)
}

// Remove deletes the object of key at the next revision. It returns the last
// state with the resourceVersion of the deletion, nil if there was none.
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

func (l *Log) Set(r schema.GroupResource, key types.NamespacedName, obj *object.Object) {
	if obj == nil {
		l.of(r).Delete(key)
		return
	}
	l.of(r).Set(key, obj)
}

// List is the objects of r as they were at a revision, in the order of their
// keys. It is false when the revision is compacted or has not been reached.
func (l *Log) List(r schema.GroupResource, revision int64) ([]*object.Object, bool) {
	v, ok := l.At(r, revision)
	if !ok {
		return nil, false
	}
	return v.Take(Everything, v.Count(Everything)), true
}

// All is the objects as they are now, each as its creation, in the order of
// kinds and keys.
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

// Since is what has changed after a revision, up to another. It is false when
// some of it is compacted.
func (l *Log) Since(after, upTo int64) ([]Change, bool) {
	if after < l.Compacted {
		return nil, false
	}
	from, _ := slices.BinarySearchFunc(l.Changes, after+1, byRevision)
	to, _ := slices.BinarySearchFunc(l.Changes, upTo+1, byRevision)
	return l.Changes[from:max(from, to)], true
}

func byRevision(c Change, revision int64) int { return cmp.Compare(c.Revision, revision) }

// Compact forgets how things came to be as they are at a revision. A revision
// that has not been reached counts as the newest.
func (l *Log) Compact(revision int64) {
	revision = min(revision, l.Revision)
	if revision <= l.Compacted {
		return
	}
	n, _ := slices.BinarySearchFunc(l.Changes, revision+1, byRevision)
	l.Changes = slices.Clone(l.Changes[n:])
	l.Compacted = revision
}

// Rewind undoes the last n revisions, as far as they are not compacted: the
// store after a restore from a backup. The counter goes back with them. It
// returns what that changed, each at the revision that it led back to.
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
