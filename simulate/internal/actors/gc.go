// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// collector is the garbage collector. It deletes objects whose owners are gone. It removes
// owners that are deleted in the foreground, once no dependent blocks them, and those that
// orphan their dependents.
type collector struct{ *controllers }

func (collector) name() string { return "garbage collector" }

func (a collector) observe(c revisions.Change, look func(Reference)) {
	if c.Before != nil {
		m := c.Before.Meta()
		if c.After == nil || c.After.Meta().GetUID() != m.GetUID() {
			for _, dependent := range a.index.of(m.GetUID()) {
				look(dependent)
			}
		}
		a.observeOwners(m.GetOwnerReferences(), look)
	}
	if c.After == nil {
		return
	}
	m := c.After.Meta()
	if waitsForDependents(m) || orphansDependents(m) {
		look(aboutOf(c))
		return
	}
	for _, owner := range m.GetOwnerReferences() {
		held := a.owner(owner.UID)
		if held == nil || waitsForDependents(held.Meta()) || outside(held, c.After) {
			look(aboutOf(c))
		}
	}
}

// observeOwners looks at owners that may have waited for a change.
func (a collector) observeOwners(owners []metav1.OwnerReference, look func(Reference)) {
	for _, owner := range owners {
		if held := a.owner(owner.UID); held != nil && waitsForDependents(held.Meta()) {
			look(a.index.identities[owner.UID])
		}
	}
}

// owner returns the object with a UID, or nil.
func (a collector) owner(uid types.UID) *object.Object {
	about, known := a.index.identities[uid]
	if !known {
		return nil
	}
	obj := a.get(about)
	if obj == nil || obj.Meta().GetUID() != uid {
		return nil
	}
	return obj
}

// outside reports whether an owner cannot own obj because it is in another namespace.
func outside(owner, obj *object.Object) bool {
	namespace := owner.Meta().GetNamespace()
	return namespace != "" && namespace != obj.Meta().GetNamespace()
}

func waitsForDependents(m metav1.Object) bool {
	return !object.Unset(m.GetDeletionTimestamp()) && slices.Contains(m.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

func orphansDependents(m metav1.Object) bool {
	return !object.Unset(m.GetDeletionTimestamp()) && slices.Contains(m.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

func (a collector) act(ctx context.Context, about Reference) (time.Duration, error) {
	obj := a.get(about)
	if obj == nil {
		return 0, nil
	}
	m := obj.Meta()
	switch {
	case orphansDependents(m):
		return 0, a.orphan(ctx, about, m.GetUID())
	case waitsForDependents(m):
		return 0, a.deleteDependents(ctx, about, m.GetUID())
	case !object.Unset(m.GetDeletionTimestamp()):
		return 0, nil
	}
	return 0, a.collect(ctx, about, obj)
}

// orphan removes an owner's references from its dependents, and then the owner.
func (a collector) orphan(ctx context.Context, about Reference, owner types.UID) error {
	for _, dependent := range a.index.of(owner) {
		if err := a.disown(ctx, dependent, []types.UID{owner}); err != nil {
			return err
		}
	}
	return a.release(ctx, about, metav1.FinalizerOrphanDependents)
}

// disown removes references to owners from a dependent.
func (a collector) disown(ctx context.Context, dependent Reference, owners []types.UID) error {
	if a.get(dependent) == nil {
		return nil
	}
	return a.edit(ctx, dependent, "", func(obj *object.Object) {
		obj.Meta().SetOwnerReferences(without(obj.Meta().GetOwnerReferences(), func(o metav1.OwnerReference) bool { return slices.Contains(owners, o.UID) }))
	})
}

// release removes a finalizer from an object.
func (a collector) release(ctx context.Context, about Reference, finalizer string) error {
	return a.edit(ctx, about, "", func(obj *object.Object) {
		obj.Meta().SetFinalizers(without(obj.Meta().GetFinalizers(), func(f string) bool { return f == finalizer }))
	})
}

// without returns list without the items that drop selects; nil if none is left.
func without[T any](list []T, drop func(T) bool) []T {
	if list = slices.DeleteFunc(slices.Clone(list), drop); len(list) == 0 {
		return nil
	}
	return list
}

// deleteDependents deletes the dependents of an owner, and removes the owner when none of
// them blocks it any more.
func (a collector) deleteDependents(ctx context.Context, about Reference, owner types.UID) error {
	blocked := false
	for _, dependent := range a.index.of(owner) {
		obj := a.get(dependent)
		if obj == nil {
			continue
		}
		m := obj.Meta()
		blocked = blocked || slices.ContainsFunc(m.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
			return o.UID == owner && o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
		})
		if object.Unset(m.GetDeletionTimestamp()) {
			a.look(a, dependent)
		}
	}
	if blocked {
		return nil
	}
	return a.release(ctx, about, metav1.FinalizerDeleteDependents)
}

// owners are the owners of an object, by their state.
type owners struct {
	solid            int
	dangling, ending []types.UID
	// foreign: the object is cluster-scoped and names an owner of a namespaced kind. It is
	// not collected.
	foreign bool
}

// classify looks up each owner by its kind and name.
func (a collector) classify(obj *object.Object) (out owners, err error) {
	m := obj.Meta()
	for _, ref := range m.GetOwnerReferences() {
		r, namespaced, served := a.kindOf(ref)
		if !served {
			return out, fmt.Errorf("owner of %s %s: there is no kind %s in %s", m.GetKind(), m.GetName(), ref.Kind, ref.APIVersion)
		}
		key := types.NamespacedName{Name: ref.Name}
		if namespaced {
			key.Namespace = m.GetNamespace()
		}
		if namespaced && key.Namespace == "" {
			return owners{foreign: true}, nil
		}
		switch owner := a.get(Reference{r, key}); {
		case owner == nil || owner.Meta().GetUID() != ref.UID:
			out.dangling = append(out.dangling, ref.UID)
		case waitsForDependents(owner.Meta()):
			out.ending = append(out.ending, ref.UID)
		default:
			out.solid++
		}
	}
	return out, nil
}

func (a collector) kindOf(ref metav1.OwnerReference) (r schema.GroupResource, namespaced, served bool) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return r, false, false
	}
	return a.cluster.Kind(gv.WithKind(ref.Kind))
}

// collect deletes an object if each of its owners is gone or being deleted. Otherwise it
// removes the references to those owners.
func (a collector) collect(ctx context.Context, about Reference, obj *object.Object) error {
	if len(obj.Meta().GetOwnerReferences()) == 0 {
		return nil
	}
	of, err := a.classify(obj)
	switch {
	case err != nil || of.foreign:
		return err
	case of.solid > 0 && len(of.dangling)+len(of.ending) == 0:
		return nil
	case of.solid > 0:
		return a.disown(ctx, about, append(of.dangling, of.ending...))
	case len(of.ending) > 0 && len(a.index.of(obj.Meta().GetUID())) > 0:
		if err := a.breakCircle(ctx, about, obj); err != nil {
			return err
		}
		return a.remove(ctx, about, a.seen(about, obj), metav1.DeletePropagationForeground, nil)
	}
	policy := metav1.DeletePropagationBackground
	switch finalizers := obj.Meta().GetFinalizers(); {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	}
	return a.remove(ctx, about, obj, policy, nil)
}

func (a collector) seen(about Reference, before *object.Object) *object.Object {
	if obj := a.get(about); obj != nil {
		return obj
	}
	return before
}

// breakCircle unblocks the owners of an object whose dependents wait for their own
// dependents. Otherwise they could wait for each other forever.
func (a collector) breakCircle(ctx context.Context, about Reference, obj *object.Object) error {
	for _, dependent := range a.index.of(obj.Meta().GetUID()) {
		if held := a.get(dependent); held == nil || !waitsForDependents(held.Meta()) {
			continue
		}
		return a.edit(ctx, about, "", func(obj *object.Object) {
			owners := obj.Meta().GetOwnerReferences()
			for i := range owners {
				owners[i].BlockOwnerDeletion = new(false)
			}
			obj.Meta().SetOwnerReferences(owners)
		})
	}
	return nil
}
