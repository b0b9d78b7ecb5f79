// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// objectIndex indexes objects by UID, by owner and by namespace. Each change updates it. It
// is pure.
type objectIndex struct {
	identities map[types.UID]Reference
	dependents map[types.UID]map[Reference]struct{}
	residents  map[string]map[schema.GroupResource]map[string]struct{} // namespace, kind, name
}

func newObjectIndex() *objectIndex {
	return &objectIndex{
		identities: map[types.UID]Reference{},
		dependents: map[types.UID]map[Reference]struct{}{},
		residents:  map[string]map[schema.GroupResource]map[string]struct{}{},
	}
}

func aboutOf(c revisions.Change) Reference { return Reference{c.Resource, c.Key} }

// apply applies a change.
func (x *objectIndex) apply(c revisions.Change) {
	about := aboutOf(c)
	if c.Before != nil {
		m := c.Before.Meta()
		delete(x.identities, m.GetUID())
		for _, owner := range m.GetOwnerReferences() {
			delete(x.dependents[owner.UID], about)
			if len(x.dependents[owner.UID]) == 0 {
				delete(x.dependents, owner.UID)
			}
		}
	}
	if c.After == nil {
		x.leave(about)
		return
	}
	m := c.After.Meta()
	x.identities[m.GetUID()] = about
	for _, owner := range m.GetOwnerReferences() {
		if x.dependents[owner.UID] == nil {
			x.dependents[owner.UID] = map[Reference]struct{}{}
		}
		x.dependents[owner.UID][about] = struct{}{}
	}
	kinds := x.residents[about.Namespace]
	if kinds == nil {
		kinds = map[schema.GroupResource]map[string]struct{}{}
		x.residents[about.Namespace] = kinds
	}
	if kinds[about.GroupResource] == nil {
		kinds[about.GroupResource] = map[string]struct{}{}
	}
	kinds[about.GroupResource][about.Name] = struct{}{}
}

func (x *objectIndex) leave(about Reference) {
	kinds := x.residents[about.Namespace]
	delete(kinds[about.GroupResource], about.Name)
	if len(kinds[about.GroupResource]) == 0 {
		delete(kinds, about.GroupResource)
	}
	if len(kinds) == 0 {
		delete(x.residents, about.Namespace)
	}
}

// of returns the dependents of an object, in the order of kinds and keys.
func (x *objectIndex) of(owner types.UID) []Reference {
	return slices.SortedFunc(maps.Keys(x.dependents[owner]), compareReferences)
}

// in returns the objects of a namespace, in the order of kinds and keys.
func (x *objectIndex) in(namespace string) (out []Reference) {
	for r, names := range x.residents[namespace] {
		for name := range names {
			out = append(out, Reference{r, types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
	slices.SortFunc(out, compareReferences)
	return out
}

// each returns the objects of one kind in a namespace, in the order of names.
func (x *objectIndex) each(r schema.GroupResource, namespace string) (out []Reference) {
	for _, name := range slices.Sorted(maps.Keys(x.residents[namespace][r])) {
		out = append(out, Reference{r, types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return out
}

// namespacesOf returns the namespaces that have objects of a kind.
func (x *objectIndex) namespacesOf(r schema.GroupResource) (out []string) {
	for namespace, kinds := range x.residents {
		if len(kinds[r]) > 0 {
			out = append(out, namespace)
		}
	}
	slices.Sort(out)
	return out
}

func compareReferences(a, b Reference) int {
	return compareTasks(task{about: a}, task{about: b})
}

// controllerOf returns the UID of the owner that controls an object; empty if there is
// none.
func controllerOf(obj *object.Object) types.UID {
	if obj == nil {
		return ""
	}
	if ref := metav1.GetControllerOfNoCopy(obj.Meta()); ref != nil {
		return ref.UID
	}
	return ""
}
