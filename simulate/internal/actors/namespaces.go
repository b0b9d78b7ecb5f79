// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// namespaceKeeper empties namespaces that are deleted, and creates the default objects of
// the others.
type namespaceKeeper struct{ *controllers }

const (
	accountOfAll = "default"
	rootsOfAll   = "kube-root-ca.crt"
)

func (namespaceKeeper) name() string { return "namespaces" }

func (a namespaceKeeper) observe(c revisions.Change, look func(Reference)) {
	home := Reference{object.Namespaces, types.NamespacedName{Name: c.Key.Namespace}}
	switch {
	case c.Resource == object.Namespaces && c.After != nil:
		look(aboutOf(c))
	case c.Key.Namespace == "":
	case c.After == nil && furniture(aboutOf(c)):
		look(home)
	default:
		if namespace := a.get(home); namespace != nil && !object.Unset(namespace.Meta().GetDeletionTimestamp()) {
			look(home)
		}
	}
}

func furniture(about Reference) bool {
	return about.GroupResource == object.Accounts && about.Name == accountOfAll || about.GroupResource == object.ConfigMaps && about.Name == rootsOfAll
}

func (a namespaceKeeper) act(ctx context.Context, about Reference) (time.Duration, error) {
	obj := a.get(about)
	if obj == nil {
		return 0, nil
	}
	if object.Unset(obj.Meta().GetDeletionTimestamp()) {
		return 0, a.furnish(ctx, about.Name)
	}
	namespace, err := object.TypedOf[corev1.Namespace](obj)
	if err != nil || !slices.Contains(namespace.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return 0, err
	}
	return 0, a.end(ctx, about)
}

// furnish creates the objects that each namespace has.
func (a namespaceKeeper) furnish(ctx context.Context, namespace string) error {
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: namespace, Name: name} }
	if a.get(Reference{object.Accounts, key(accountOfAll)}) == nil {
		if _, err := a.create(ctx, byControllers, object.Accounts, &corev1.ServiceAccount{ObjectMeta: in(accountOfAll)}); err != nil {
			return err
		}
	}
	if a.get(Reference{object.ConfigMaps, key(rootsOfAll)}) != nil {
		return nil
	}
	roots := &corev1.ConfigMap{ObjectMeta: in(rootsOfAll), Data: map[string]string{"ca.crt": ""}}
	_, err := a.create(ctx, byControllers, object.ConfigMaps, roots)
	return err
}

// end deletes the objects of a namespace, reports progress in its status, and removes the
// namespace when nothing is left.
func (a namespaceKeeper) end(ctx context.Context, about Reference) error {
	var failed error
	for _, resident := range a.index.in(about.Name) {
		obj := a.get(resident)
		if obj == nil || !object.Unset(obj.Meta().GetDeletionTimestamp()) {
			continue
		}
		if err := a.remove(ctx, resident, obj, metav1.DeletePropagationBackground, nil); err != nil && !apierrors.IsNotFound(err) && failed == nil {
			failed = err
		}
	}
	left := a.left(about.Name)
	conditions := left.conditions(failed)
	_, err := update(ctx, a.controllers, byControllers, about, "status", func(n *corev1.Namespace) {
		for _, is := range conditions {
			setNamespaceCondition(&n.Status, is)
		}
	})
	if err != nil || failed != nil || left.objects > 0 {
		return firstError(err, failed)
	}
	return a.edit(ctx, about, "finalize", func(obj *object.Object) {
		spec, _ := obj.Fields["spec"].(map[string]any)
		finalizers, _ := spec["finalizers"].([]any)
		finalizers = slices.DeleteFunc(finalizers, func(f any) bool { return f == string(corev1.FinalizerKubernetes) })
		if spec["finalizers"] = finalizers; len(finalizers) == 0 {
			delete(spec, "finalizers")
		}
	})
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// leftovers returns the objects that are still in a namespace.
type leftovers struct {
	objects    int
	kinds      map[schema.GroupResource]int
	finalizers map[string]int
}

func (a namespaceKeeper) left(namespace string) leftovers {
	l := leftovers{kinds: map[schema.GroupResource]int{}, finalizers: map[string]int{}}
	for _, resident := range a.index.in(namespace) {
		obj := a.get(resident)
		if obj == nil {
			continue
		}
		l.objects++
		l.kinds[resident.GroupResource]++
		for _, f := range obj.Meta().GetFinalizers() {
			l.finalizers[f]++
		}
	}
	return l
}

// conditions describe the objects that are left, as in a real cluster.
func (l leftovers) conditions(failed error) []corev1.NamespaceCondition {
	is := func(kind corev1.NamespaceConditionType, status corev1.ConditionStatus, reason, message string) corev1.NamespaceCondition {
		return corev1.NamespaceCondition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	content := is(corev1.NamespaceDeletionContentFailure, corev1.ConditionFalse, "ContentDeleted", "All content successfully deleted, may be waiting on finalization")
	if failed != nil {
		content = is(corev1.NamespaceDeletionContentFailure, corev1.ConditionTrue, "ContentDeletionFailed", "Failed to delete all resource types, 1 remaining: "+failed.Error())
	}
	remaining := is(corev1.NamespaceContentRemaining, corev1.ConditionFalse, "ContentRemoved", "All content successfully removed")
	if len(l.kinds) > 0 {
		var words []string
		for r, n := range l.kinds {
			words = append(words, fmt.Sprintf("%s.%s has %d resource instances", r.Resource, r.Group, n))
		}
		slices.Sort(words)
		remaining = is(corev1.NamespaceContentRemaining, corev1.ConditionTrue, "SomeResourcesRemain", "Some resources are remaining: "+strings.Join(words, ", "))
	}
	finalizers := is(corev1.NamespaceFinalizersRemaining, corev1.ConditionFalse, "ContentHasNoFinalizers", "All content-preserving finalizers finished")
	if len(l.finalizers) > 0 {
		var words []string
		for _, name := range slices.Sorted(maps.Keys(l.finalizers)) {
			words = append(words, fmt.Sprintf("%s in %d resource instances", name, l.finalizers[name]))
		}
		finalizers = is(corev1.NamespaceFinalizersRemaining, corev1.ConditionTrue, "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: "+strings.Join(words, ", "))
	}
	return []corev1.NamespaceCondition{
		is(corev1.NamespaceDeletionDiscoveryFailure, corev1.ConditionFalse, "ResourcesDiscovered", "All resources successfully discovered"),
		is(corev1.NamespaceDeletionGVParsingFailure, corev1.ConditionFalse, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
		content, remaining, finalizers,
	}
}

func setNamespaceCondition(status *corev1.NamespaceStatus, is corev1.NamespaceCondition) {
	is.LastTransitionTime = object.Now()
	for i, was := range status.Conditions {
		if was.Type != is.Type {
			continue
		}
		if was.Status != is.Status || was.Reason != is.Reason || was.Message != is.Message {
			status.Conditions[i] = is
		}
		return
	}
	status.Conditions = append(status.Conditions, is)
}
