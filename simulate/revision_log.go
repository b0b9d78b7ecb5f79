// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/btree"
)

// change is what one revision did: before is nil for a creation, after for a
// deletion.
type change struct {
	revision      int64
	resource      schema.GroupResource
	key           types.NamespacedName
	before, after *object
	gone          *object // of a deletion: before, with its version
}

// revisionLog is all that is stored: one counter of revisions for all kinds,
// the objects as they are now, and the changes that led there, back to the
// last compaction. It is pure: no lock, no clock.
type revisionLog struct {
	revision  int64
	compacted int64    // what was before this revision can no longer be told
	changes   []change // with revision > compacted, ascending
	objects   map[schema.GroupResource]*objectMap
	sharing   *sharing
}

// objectMap is the objects of one kind in the order of the store.
type objectMap = btree.Map[types.NamespacedName, *object]

func newRevisionLog() *revisionLog {
	// Revision 1 is the store as it begins, as in etcd.
	return &revisionLog{revision: 1, compacted: 1, objects: map[schema.GroupResource]*objectMap{}, sharing: newSharing()}
}

// of is the objects of r as they are now.
func (l *revisionLog) of(r schema.GroupResource) *objectMap {
	known := l.objects[r]
	if known == nil {
		known = btree.New[types.NamespacedName, *object](compareKeys)
		l.objects[r] = known
	}
	return known
}

func (l *revisionLog) get(r schema.GroupResource, key types.NamespacedName) *object {
	obj, _ := l.of(r).Get(key)
	return obj
}

// put stores obj under key at the next revision, and returns it with that
// resourceVersion.
func (l *revisionLog) put(r schema.GroupResource, key types.NamespacedName, obj *object) *object {
	stored := obj.at(l.revision + 1)
	l.sharing.share(stored.fields)
	return l.write(r, key, stored)
}

// remove deletes the object of key at the next revision. It returns the last
// state with the resourceVersion of the deletion, nil if there was none.
func (l *revisionLog) remove(r schema.GroupResource, key types.NamespacedName) *object {
	old := l.get(r, key)
	if old == nil {
		return nil
	}
	l.write(r, key, nil)
	return l.changes[len(l.changes)-1].gone
}

func (l *revisionLog) write(r schema.GroupResource, key types.NamespacedName, after *object) *object {
	l.revision++
	c := change{revision: l.revision, resource: r, key: key, before: l.get(r, key), after: after}
	if after == nil && c.before != nil {
		c.gone = c.before.at(l.revision)
	}
	l.changes = append(l.changes, c)
	l.set(r, key, after)
	return after
}

func (l *revisionLog) set(r schema.GroupResource, key types.NamespacedName, obj *object) {
	if obj == nil {
		l.of(r).Delete(key)
		return
	}
	l.of(r).Set(key, obj)
}

// list is the objects of r as they were at a revision, in the order of their
// keys. It is false when the revision is compacted or has not been reached.
func (l *revisionLog) list(r schema.GroupResource, revision int64) ([]*object, bool) {
	v, ok := l.at(r, revision)
	if !ok {
		return nil, false
	}
	return v.take(everything, v.count(everything)), true
}

// all is the objects as they are now, each as its creation, in the order of
// kinds and keys.
func (l *revisionLog) all() (out []change) {
	resources := slices.SortedFunc(maps.Keys(l.objects), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	for _, r := range resources {
		objects, _ := l.list(r, l.revision)
		for _, obj := range objects {
			out = append(out, change{revision: obj.revision(), resource: r, key: obj.key(), after: obj})
		}
	}
	return out
}

// since is what has changed after a revision, up to another. It is false when
// some of it is compacted.
func (l *revisionLog) since(after, upTo int64) ([]change, bool) {
	if after < l.compacted {
		return nil, false
	}
	from, _ := slices.BinarySearchFunc(l.changes, after+1, byRevision)
	to, _ := slices.BinarySearchFunc(l.changes, upTo+1, byRevision)
	return l.changes[from:max(from, to)], true
}

func byRevision(c change, revision int64) int { return cmp.Compare(c.revision, revision) }

// compact forgets how things came to be as they are at a revision. A revision
// that has not been reached counts as the newest.
func (l *revisionLog) compact(revision int64) {
	revision = min(revision, l.revision)
	if revision <= l.compacted {
		return
	}
	n, _ := slices.BinarySearchFunc(l.changes, revision+1, byRevision)
	l.changes = slices.Clone(l.changes[n:])
	l.compacted = revision
}

// rewind undoes the last n revisions, as far as they are not compacted: the
// store after a restore from a backup. The counter goes back with them. It
// returns what that changed, each at the revision that it led back to.
func (l *revisionLog) rewind(n int) (undone []change) {
	for ; n > 0 && len(l.changes) > 0; n-- {
		last := l.changes[len(l.changes)-1]
		l.changes = l.changes[:len(l.changes)-1]
		l.set(last.resource, last.key, last.before)
		l.revision = last.revision - 1
		undone = append(undone, change{revision: l.revision, resource: last.resource, key: last.key, before: last.after, after: last.before})
	}
	return undone
}
