// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// controllerIndex indexes objects by the UID of their controller.
const controllerIndex = "reconcile.flyball.dev/controller"

// ChildKind is a kind of children, and where a ChildSet reads them. Create it with
// Children.
type ChildKind struct {
	kind     schema.GroupVersionKind
	get      func(key Key) (kube.Object, error)
	children func(parent types.UID) ([]kube.Object, error)
	recreate metav1.DeletionPropagation // of Recreate; empty: never
	misuse   error
}

// Children returns the kind of the informer's objects as a ChildKind. The ChildSet
// reads them from the informer's cache by controller; Children adds the index for that.
// Also watch the informer with source.Owned, so that changes of a child reconcile its
// parent.
func Children[T kube.Object](objects *informer.SharedInformer[T]) ChildKind {
	if objects == nil {
		return ChildKind{misuse: errors.New("an informer of children is nil; give one from informer.For")}
	}
	lister := objects.Lister()
	k := ChildKind{kind: objects.Kind()}
	err := objects.AddIndex(controllerIndex, func(obj T) []string {
		if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
			return []string{string(ref.UID)}
		}
		return nil
	})
	if _, missing := lister.IndexValues(controllerIndex); missing != nil {
		k.misuse = fmt.Errorf("children of kind %s: %w", k.kind.Kind, err)
		return k
	} // else it exists, perhaps from another set
	k.get = func(key Key) (kube.Object, error) { return lister.Get(key) }
	k.children = func(parent types.UID) (children []kube.Object, err error) {
		found, err := lister.ByIndex(controllerIndex, string(parent))
		if err != nil {
			return nil, err
		}
		for obj := range found {
			children = append(children, obj)
		}
		return children, nil
	}
	return k
}

// Child identifies an object of a ChildSet.
type Child struct {
	Kind schema.GroupVersionKind
	Key  Key
}

// String returns kind and name, such as "Service prod/web".
func (c Child) String() string { return c.Kind.Kind + " " + keyText(c.Key) }

// unversioned returns c without the version of its kind, the same for all versions.
func (c Child) unversioned() Child {
	c.Kind.Version = ""
	return c
}

// ChildReport lists the changes of a ChildSet, each list in the order of the changes.
type ChildReport struct {
	// Created did not exist, Updated have a new resourceVersion, Unchanged the same as
	// before.
	Created, Updated, Unchanged []Child
	// Recreated were deleted and created anew (Recreate).
	Recreated []Child
	// Pruned have been deleted, or will be when their finalizers are gone.
	Pruned []Child
}

// Changed reports whether anything was changed.
func (r ChildReport) Changed() bool {
	return len(r.Created)+len(r.Updated)+len(r.Recreated)+len(r.Pruned) > 0
}

// String describes the changes, such as "created Service prod/web; 2 unchanged".
func (r ChildReport) String() string {
	var parts []string
	for _, group := range []struct {
		what     string
		children []Child
	}{{"created", r.Created}, {"updated", r.Updated}, {"recreated", r.Recreated}, {"pruned", r.Pruned}} {
		if len(group.children) == 0 {
			continue
		}
		names := make([]string, len(group.children))
		for i, c := range group.children {
			names[i] = c.String()
		}
		parts = append(parts, group.what+" "+strings.Join(names, ", "))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d unchanged", len(r.Unchanged))), "; ")
}
