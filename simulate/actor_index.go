// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// objectIndex is who is who, who depends on whom and who lives where, kept from
// change to change. It is pure.
type objectIndex struct {
	identities map[types.UID]reference
	dependents map[types.UID]map[reference]struct{}
	residents  map[string]map[schema.GroupResource]map[string]struct{} // namespace, kind, name
}

func newObjectIndex() *objectIndex {
	return &objectIndex{
		identities: map[types.UID]reference{},
		dependents: map[types.UID]map[reference]struct{}{},
		residents:  map[string]map[schema.GroupResource]map[string]struct{}{},
	}
}

func (c change) about() reference { return reference{c.resource, c.key} }

// note takes in a change.
func (x *objectIndex) note(c change) {
	about := c.about()
	if c.before != nil {
		m := c.before.meta()
		delete(x.identities, m.GetUID())
		for _, owner := range m.GetOwnerReferences() {
			delete(x.dependents[owner.UID], about)
			if len(x.dependents[owner.UID]) == 0 {
				delete(x.dependents, owner.UID)
			}
		}
	}
	if c.after == nil {
		x.leave(about)
		return
	}
	m := c.after.meta()
	x.identities[m.GetUID()] = about
	for _, owner := range m.GetOwnerReferences() {
		if x.dependents[owner.UID] == nil {
			x.dependents[owner.UID] = map[reference]struct{}{}
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

func (x *objectIndex) leave(about reference) {
	kinds := x.residents[about.Namespace]
	delete(kinds[about.GroupResource], about.Name)
	if len(kinds[about.GroupResource]) == 0 {
		delete(kinds, about.GroupResource)
	}
	if len(kinds) == 0 {
		delete(x.residents, about.Namespace)
	}
}

// of is what depends on an object, in the order of kinds and keys.
func (x *objectIndex) of(owner types.UID) []reference {
	return slices.SortedFunc(maps.Keys(x.dependents[owner]), compareReferences)
}

// in is what lives in a namespace, in the order of kinds and keys.
func (x *objectIndex) in(namespace string) (out []reference) {
	for r, names := range x.residents[namespace] {
		for name := range names {
			out = append(out, reference{r, types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
	slices.SortFunc(out, compareReferences)
	return out
}

// each is what of one kind lives in a namespace, in the order of names.
func (x *objectIndex) each(r schema.GroupResource, namespace string) (out []reference) {
	for _, name := range slices.Sorted(maps.Keys(x.residents[namespace][r])) {
		out = append(out, reference{r, types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return out
}

// namespacesOf are the namespaces in which something of a kind lives.
func (x *objectIndex) namespacesOf(r schema.GroupResource) (out []string) {
	for namespace, kinds := range x.residents {
		if len(kinds[r]) > 0 {
			out = append(out, namespace)
		}
	}
	slices.Sort(out)
	return out
}

func compareReferences(a, b reference) int {
	return compareErrands(errand{about: a}, errand{about: b})
}

// controllerOf is the UID of the one owner that is in charge of an object; "":
// none is.
func controllerOf(obj *object) types.UID {
	if obj == nil {
		return ""
	}
	if ref := metav1.GetControllerOfNoCopy(obj.meta()); ref != nil {
		return ref.UID
	}
	return ""
}
