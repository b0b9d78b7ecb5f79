// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// Direct writes objects for the verbs of tests, without the steps of a request: nothing is
// filled in, and nobody owns it. Its caller has locked the store.
type Direct struct {
	tx       Tx
	allotter *Allotter
}

// Direct returns what writes in a transaction.
func (p *Path) Direct(tx Tx) Direct { return Direct{tx, p.Allotter} }

// Create stores a new object.
func (d Direct) Create(kind *kinds.Kind, obj *object.Object) (*object.Object, error) {
	m, r := obj.Meta(), kind.Held()
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(d.allotter.Name(m.GetGenerateName()))
	}
	switch {
	case m.GetName() == "":
		return nil, refusal.Invalid(kind.GroupKind(), "", "metadata.name", "Required value: name or generateName is required")
	case d.tx.Get(r, obj.Key()) != nil:
		return nil, apierrors.NewAlreadyExists(r, m.GetName())
	case kind.Namespaced && d.tx.Get(object.Namespaces, types.NamespacedName{Name: m.GetNamespace()}) == nil:
		return nil, fmt.Errorf("%w; name it in Options.Namespaces, or put it first", apierrors.NewNotFound(object.Namespaces, m.GetNamespace()))
	}
	m.SetUID(d.allotter.UID())
	m.SetCreationTimestamp(object.Now())
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	if kind.CountsFromCreation(obj) {
		m.SetGeneration(1)
	}
	return d.tx.Put(r, obj), nil
}

// Update replaces old, which is stored, with obj.
func (d Direct) Update(kind *kinds.Kind, old, obj *object.Object) (*object.Object, error) {
	r, m, was := kind.Held(), obj.Meta(), old.Meta()
	if err := checkVersion(kind, m.GetName(), old, obj); err != nil {
		return nil, err
	}
	m.SetUID(was.GetUID())
	m.SetCreationTimestamp(was.GetCreationTimestamp())
	m.SetDeletionTimestamp(was.GetDeletionTimestamp())
	m.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	m.SetGeneration(was.GetGeneration())
	m.SetResourceVersion(was.GetResourceVersion())
	if managed := was.GetManagedFields(); len(managed) > 0 && len(m.GetManagedFields()) == 0 {
		m.SetManagedFields(managed)
	}
	if Counts(kind, old, obj) {
		m.SetGeneration(m.GetGeneration() + 1)
	}
	if object.Same(old, obj) {
		return old, nil // not even a new version
	}
	if Completes(old, obj) {
		d.tx.Remove(r, obj.Key())
		return obj, nil
	}
	return d.tx.Put(r, obj), nil
}
