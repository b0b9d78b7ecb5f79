// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// corrupt replaces the value of a field. No field outside of metadata may have it.
const corrupt = int64(5)

// Objects are the corrupted objects: their fields cannot be decoded into the type of their
// kind.
type Objects struct {
	mu struct {
		sync.Mutex
		before map[ObjectID]*object.Object // as they were before
	}
}

// ObjectID is the resource and the key of an object.
type ObjectID struct {
	schema.GroupResource
	types.NamespacedName
}

func (id ObjectID) compare(other ObjectID) int {
	return cmp.Or(cmp.Compare(id.Group, other.Group), cmp.Compare(id.Resource, other.Resource), revisions.CompareKeys(id.NamespacedName, other.NamespacedName))
}

// Corrupt returns a corrupted copy of an object, and remembers the object.
func (o *Objects) Corrupt(r schema.GroupResource, obj *object.Object) *object.Object {
	if !obj.Corrupt { // else it is remembered already
		o.mu.Lock()
		set(&o.mu.before, ObjectID{r, obj.Key()}, obj)
		o.mu.Unlock()
	}
	out := obj.Copy()
	out.Corrupt = true
	for name := range out.Fields {
		if name != "metadata" && name != "kind" && name != "apiVersion" {
			out.Fields[name] = corrupt
		}
	}
	return out
}

// Sound returns an object of a kind without its corruption. An object that was not corrupted by
// Corrupt, or nil, is returned as it is.
func (o *Objects) Sound(kind *kinds.Kind, obj *object.Object) *object.Object {
	if obj == nil || !obj.Corrupt {
		return obj
	}
	o.mu.Lock()
	before := o.mu.before[ObjectID{kind.GroupResource(), obj.Key()}]
	o.mu.Unlock()
	if before == nil || before.Meta().GetUID() != obj.Meta().GetUID() {
		return obj
	}
	return restore(obj, before)
}

// A Corrupted object is one that was corrupted before faults were healed.
type Corrupted struct {
	ObjectID
	before *object.Object
}

// Heal forgets the corrupted objects and returns them in order. The caller restores them.
func (o *Objects) Heal() (all []Corrupted) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(o.mu.before), ObjectID.compare) {
		all = append(all, Corrupted{id, o.mu.before[id]})
	}
	clear(o.mu.before)
	return all
}

// Restored returns the present object without its corruption; nil if it is gone.
func (p Corrupted) Restored(now *object.Object) *object.Object {
	if now == nil || now.Meta().GetUID() != p.before.Meta().GetUID() {
		return nil
	}
	return restore(now, p.before)
}

// restore returns a copy of a corrupted object with the fields that it had before, except
// those that were written since.
func restore(obj, before *object.Object) *object.Object {
	out := obj.Copy()
	out.Corrupt = false
	for name, value := range before.Copy().Fields {
		if out.Fields[name] == corrupt {
			out.Fields[name] = value
		}
	}
	return out
}
