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

// poison replaces the value of a field. No field outside of metadata may have it.
const poison = int64(5)

// Objects are the poisoned objects: their fields cannot be decoded into the type of their
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

// Poison returns a poisoned copy of an object, and remembers the object.
func (o *Objects) Poison(r schema.GroupResource, obj *object.Object) *object.Object {
	if !obj.Poison { // else it is remembered already
		o.mu.Lock()
		set(&o.mu.before, ObjectID{r, obj.Key()}, obj)
		o.mu.Unlock()
	}
	out := obj.Copy()
	out.Poison = true
	for name := range out.Fields {
		if name != "metadata" && name != "kind" && name != "apiVersion" {
			out.Fields[name] = poison
		}
	}
	return out
}

// Sound returns an object of a kind without its poison. An object that was not poisoned by
// Poison, or nil, is returned as it is.
func (o *Objects) Sound(kind *kinds.Kind, obj *object.Object) *object.Object {
	if obj == nil || !obj.Poison {
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

// A Poisoned object is one that was poisoned before faults were healed.
type Poisoned struct {
	ObjectID
	before *object.Object
}

// Heal forgets the poisoned objects and returns them in order. The caller restores them.
func (o *Objects) Heal() (all []Poisoned) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(o.mu.before), ObjectID.compare) {
		all = append(all, Poisoned{id, o.mu.before[id]})
	}
	clear(o.mu.before)
	return all
}

// Restored returns the present object without its poison; nil if it is gone.
func (p Poisoned) Restored(now *object.Object) *object.Object {
	if now == nil || now.Meta().GetUID() != p.before.Meta().GetUID() {
		return nil
	}
	return restore(now, p.before)
}

// restore returns a copy of a poisoned object with the fields that it had before, except
// those that were written since.
func restore(obj, before *object.Object) *object.Object {
	out := obj.Copy()
	out.Poison = false
	for name, value := range before.Copy().Fields {
		if out.Fields[name] == poison {
			out.Fields[name] = value
		}
	}
	return out
}
