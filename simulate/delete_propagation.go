// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 a server takes what old clients send

package simulate

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// setPropagation puts in the finalizers that say what becomes of dependents,
// and reports whether that changed anything.
func setPropagation(obj *object.Object, k *kinds.Kind, opts *metav1.DeleteOptions) bool {
	m := obj.Meta()
	was := m.GetFinalizers()
	is := slices.DeleteFunc(slices.Clone(was), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	switch propagationOf(k, was, opts) {
	case metav1.DeletePropagationOrphan:
		is = append(is, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		is = append(is, metav1.FinalizerDeleteDependents)
	}
	if sameMembers(was, is) {
		return false
	}
	m.SetFinalizers(is)
	return true
}

func sameMembers(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// propagationOf is what becomes of dependents: as the request says, else as the
// object's finalizers say already, else as its kind has always had it.
func propagationOf(k *kinds.Kind, finalizers []string, opts *metav1.DeleteOptions) metav1.DeletionPropagation {
	switch {
	case opts.PropagationPolicy != nil:
		return *opts.PropagationPolicy
	case opts.OrphanDependents != nil && *opts.OrphanDependents:
		return metav1.DeletePropagationOrphan
	case opts.OrphanDependents != nil:
		return metav1.DeletePropagationBackground
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	case k.Is(kinds.Orphaning):
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}
