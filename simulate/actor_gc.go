// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// collector is the garbage collector: it deletes what depends on objects that
// are gone, and lets go owners that are deleted in the foreground, when nothing
// that blocks them is left, or as orphanages.
type collector struct{ *company }

func (collector) name() string { return "garbage collector" }

func (a collector) heed(c change, look func(reference)) {
	if c.before != nil {
		m := c.before.meta()
		if c.after == nil || c.after.meta().GetUID() != m.GetUID() {
			for _, dependent := range a.index.of(m.GetUID()) {
				look(dependent)
			}
		}
		a.heedOwners(m.GetOwnerReferences(), look)
	}
	if c.after == nil {
		return
	}
	m := c.after.meta()
	if waitsForDependents(m) || orphansDependents(m) {
		look(c.about())
		return
	}
	for _, owner := range m.GetOwnerReferences() {
		held := a.owner(owner.UID)
		if held == nil || waitsForDependents(held.meta()) || outside(held, c.after) {
			look(c.about())
		}
	}
}

// heedOwners has a look at owners who may have waited for what has changed.
func (a collector) heedOwners(owners []metav1.OwnerReference, look func(reference)) {
	for _, owner := range owners {
		if held := a.owner(owner.UID); held != nil && waitsForDependents(held.meta()) {
			look(a.index.identities[owner.UID])
		}
	}
}

// owner is the object of an identity; nil: there is none.
func (a collector) owner(uid types.UID) *object {
	about, known := a.index.identities[uid]
	if !known {
		return nil
	}
	obj := a.get(about)
	if obj == nil || obj.meta().GetUID() != uid {
		return nil
	}
	return obj
}

// outside reports whether an owner cannot be one of obj: it lives in another
// namespace.
func outside(owner, obj *object) bool {
	namespace := owner.meta().GetNamespace()
	return namespace != "" && namespace != obj.meta().GetNamespace()
}

func waitsForDependents(m metav1.Object) bool {
	return !unset(m.GetDeletionTimestamp()) && slices.Contains(m.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

func orphansDependents(m metav1.Object) bool {
	return !unset(m.GetDeletionTimestamp()) && slices.Contains(m.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

func (a collector) act(ctx context.Context, about reference) (time.Duration, error) {
	obj := a.get(about)
	if obj == nil {
		return 0, nil
	}
	m := obj.meta()
	switch {
	case orphansDependents(m):
		return 0, a.orphan(ctx, about, m.GetUID())
	case waitsForDependents(m):
		return 0, a.deleteDependents(ctx, about, m.GetUID())
	case !unset(m.GetDeletionTimestamp()):
		return 0, nil
	}
	return 0, a.collect(ctx, about, obj)
}

// orphan takes its dependents from an owner, and then lets the owner go.
func (a collector) orphan(ctx context.Context, about reference, owner types.UID) error {
	for _, dependent := range a.index.of(owner) {
		if err := a.disown(ctx, dependent, []types.UID{owner}); err != nil {
			return err
		}
	}
	return a.release(ctx, about, metav1.FinalizerOrphanDependents)
}

// disown takes references to owners from a dependent.
func (a collector) disown(ctx context.Context, dependent reference, owners []types.UID) error {
	if a.get(dependent) == nil {
		return nil
	}
	return a.edit(ctx, dependent, "", func(obj *object) {
		obj.meta().SetOwnerReferences(without(obj.meta().GetOwnerReferences(), func(o metav1.OwnerReference) bool { return slices.Contains(owners, o.UID) }))
	})
}

// release takes a finalizer from an object.
func (a collector) release(ctx context.Context, about reference, finalizer string) error {
	return a.edit(ctx, about, "", func(obj *object) {
		obj.meta().SetFinalizers(without(obj.meta().GetFinalizers(), func(f string) bool { return f == finalizer }))
	})
}

// without is list without what drop names; nil when nothing is left.
func without[T any](list []T, drop func(T) bool) []T {
	if list = slices.DeleteFunc(slices.Clone(list), drop); len(list) == 0 {
		return nil
	}
	return list
}

// deleteDependents has dependents of an owner deleted, and lets the owner go
// when none is left that blocks it.
func (a collector) deleteDependents(ctx context.Context, about reference, owner types.UID) error {
	blocked := false
	for _, dependent := range a.index.of(owner) {
		obj := a.get(dependent)
		if obj == nil {
			continue
		}
		m := obj.meta()
		blocked = blocked || slices.ContainsFunc(m.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
			return o.UID == owner && o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
		})
		if unset(m.GetDeletionTimestamp()) {
			a.look(a, dependent)
		}
	}
	if blocked {
		return nil
	}
	return a.release(ctx, about, metav1.FinalizerDeleteDependents)
}

// owners are those of an object by how they stand.
type owners struct {
	solid            int
	dangling, ending []types.UID
	// foreign: an object without a namespace names one that has one. It is
	// left alone.
	foreign bool
}

// classify looks up each owner by kind and name, where the reference says.
func (a collector) classify(obj *object) (out owners, err error) {
	m := obj.meta()
	for _, ref := range m.GetOwnerReferences() {
		kind := a.kindOf(ref)
		if kind == nil {
			return out, fmt.Errorf("owner of %s %s: there is no kind %s in %s", m.GetKind(), m.GetName(), ref.Kind, ref.APIVersion)
		}
		key := types.NamespacedName{Name: ref.Name}
		if kind.Namespaced {
			key.Namespace = m.GetNamespace()
		}
		if kind.Namespaced && key.Namespace == "" {
			return owners{foreign: true}, nil
		}
		switch owner := a.get(reference{kind.resource(), key}); {
		case owner == nil || owner.meta().GetUID() != ref.UID:
			out.dangling = append(out.dangling, ref.UID)
		case waitsForDependents(owner.meta()):
			out.ending = append(out.ending, ref.UID)
		default:
			out.solid++
		}
	}
	return out, nil
}

func (a collector) kindOf(ref metav1.OwnerReference) *Kind {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil
	}
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	return a.server.kindLocked(gv.WithKind(ref.Kind))
}

// collect deletes an object that has owners and none that stays, and takes from
// it references to those that do not.
func (a collector) collect(ctx context.Context, about reference, obj *object) error {
	if len(obj.meta().GetOwnerReferences()) == 0 {
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
	case len(of.ending) > 0 && len(a.index.of(obj.meta().GetUID())) > 0:
		if err := a.breakCircle(ctx, about, obj); err != nil {
			return err
		}
		return a.remove(ctx, about, a.seen(about, obj), metav1.DeletePropagationForeground, nil)
	}
	policy := metav1.DeletePropagationBackground
	switch finalizers := obj.meta().GetFinalizers(); {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	}
	return a.remove(ctx, about, obj, policy, nil)
}

func (a collector) seen(about reference, before *object) *object {
	if obj := a.get(about); obj != nil {
		return obj
	}
	return before
}

// breakCircle keeps an object from blocking its owners when what depends on it
// waits for its own dependents: they could wait for each other for ever.
func (a collector) breakCircle(ctx context.Context, about reference, obj *object) error {
	for _, dependent := range a.index.of(obj.meta().GetUID()) {
		if held := a.get(dependent); held == nil || !waitsForDependents(held.meta()) {
			continue
		}
		return a.edit(ctx, about, "", func(obj *object) {
			owners := obj.meta().GetOwnerReferences()
			for i := range owners {
				owners[i].BlockOwnerDeletion = new(false)
			}
			obj.meta().SetOwnerReferences(owners)
		})
	}
	return nil
}
