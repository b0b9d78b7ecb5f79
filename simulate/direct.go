// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// Put creates an object, or replaces the one of its name whatever its version, as another
// client would. It returns the new resourceVersion. A typed object of a built-in kind needs
// no apiVersion and kind.
func (s *Server) Put(obj runtime.Object) (resourceVersion string, err error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		kinds, _, err := models.Scheme().ObjectKinds(obj)
		if err != nil {
			return "", fmt.Errorf("put %T: %w; set its apiVersion and kind", obj, err)
		}
		gvk = kinds[0]
	}
	next, err := object.ObjectOf(obj)
	if err == nil && gvk.GroupKind() == models.DefinitionKind.GroupKind() {
		err = kinds.CompleteDefinition(next)
	}
	if err != nil {
		return "", fmt.Errorf("put %s: %w", gvk.Kind, err)
	}
	tx := s.store.Begin()
	defer tx.End()
	kind := s.kinds.Kind(gvk)
	if kind == nil {
		return "", fmt.Errorf("put %s: the server does not serve the kind; Install it", gvk)
	}
	if f := kind.Family; f.Definition == nil && kind != f.Storage { // no webhook is asked
		if next, err = kind.ToStorage(next); err != nil {
			return "", fmt.Errorf("put %s: %w", gvk.Kind, err)
		}
		kind = f.Storage
	}
	m := next.Meta()
	m.SetResourceVersion("")
	m.SetUID("")
	old := tx.Get(kind.Held(), next.Key())
	if old == nil {
		next, err = s.writes.Direct(tx).Create(kind, next)
	} else {
		m.SetResourceVersion(old.Meta().GetResourceVersion())
		next, err = s.writes.Direct(tx).Update(kind, old, next)
	}
	if err != nil {
		return "", fmt.Errorf("put %s: %w", gvk.Kind, err)
	}
	return next.Meta().GetResourceVersion(), nil
}

// Remove deletes an object, as another client would. An object with finalizers stays,
// marked as deleted.
func (s *Server) Remove(r schema.GroupResource, key types.NamespacedName) error {
	tx := s.store.Begin()
	defer tx.End()
	kind := s.kinds.Stored(r)
	old := tx.Get(s.kinds.Held(r), key)
	if kind == nil || old == nil {
		return fmt.Errorf("remove %s %s: there is none", r, key)
	}
	_, _, err := write.Delete(tx, kind, old, &metav1.DeleteOptions{})
	return err
}

// Change writes an object as another client would: f changes its metadata.
func (s *Server) Change(r schema.GroupResource, key types.NamespacedName, f func(metav1.Object)) error {
	old := s.store.Get(s.kinds.Held(r), key)
	if old == nil {
		return apierrors.NewNotFound(r, key.String())
	}
	obj := old.Copy()
	f(obj.Meta())
	tx := s.store.Begin()
	defer tx.End()
	kind := s.kinds.Stored(r)
	if kind == nil || tx.Get(s.kinds.Held(r), key) != old {
		return apierrors.NewConflict(r, key.String(), nil)
	}
	_, err := s.writes.Direct(tx).Update(kind, old, obj)
	return err
}

// Object returns the present object of a resource and key; nil: there is none.
func (s *Server) Object(r schema.GroupResource, key types.NamespacedName) metav1.Object {
	if o := s.store.Get(s.kinds.Held(r), key); o != nil {
		return o.Copy().Meta()
	}
	return nil
}

// Objects returns the present objects of a resource, in the order of keys.
func (s *Server) Objects(r schema.GroupResource) []metav1.Object {
	var out []metav1.Object
	for _, o := range s.store.List(s.kinds.Held(r)) {
		out = append(out, o.Copy().Meta())
	}
	return out
}

// Look is Objects without copies. The objects must not be changed.
func (s *Server) Look(r schema.GroupResource) iter.Seq[metav1.Object] {
	return func(yield func(metav1.Object) bool) {
		for _, o := range s.store.List(s.kinds.Held(r)) {
			if !yield(o.Meta()) {
				return
			}
		}
	}
}

// Everything returns all present objects with their kinds, in the order of resources and keys. They are not copies, and
// must not be changed.
func (s *Server) Everything() iter.Seq2[schema.GroupKind, metav1.Object] {
	return func(yield func(schema.GroupKind, metav1.Object) bool) {
		resources := map[schema.GroupResource]schema.GroupKind{}
		for _, k := range s.kinds.Served(func(*kinds.Kind) bool { return true }) {
			resources[s.kinds.Held(k.GroupResource())] = k.GroupVersionKind.GroupKind()
		}
		for _, r := range slices.SortedFunc(maps.Keys(resources), func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) }) {
			for o := range s.Look(r) {
				if !yield(resources[r], o) {
					return
				}
			}
		}
	}
}

// ChangeSchema replaces the defaults of a kind and ends its watches, as a change of its CRD
// does. Objects are read with the new defaults; their resourceVersions stay.
func (s *Server) ChangeSchema(r schema.GroupResource, defaults map[string]any) error {
	tx := s.store.Begin()
	defer tx.End()
	kind := s.kinds.Stored(r)
	if kind == nil {
		return fmt.Errorf("change schema of %s: the server does not serve it", r)
	}
	changed := *kind
	changed.Defaults = defaults
	s.definitions.Replace(tx, kind.Family.With(&changed))
	return nil
}

// Uninstall removes a kind with its objects, as the deletion of its CRD does: watches
// receive each deletion and then end. Events are removed from both of their groups.
func (s *Server) Uninstall(r schema.GroupResource) {
	tx := s.store.Begin()
	defer tx.End()
	held, gone := s.kinds.Held(r), s.kinds.Family(r)
	for _, o := range tx.List(held) {
		tx.Remove(held, o.Key())
	}
	for _, alias := range s.kinds.Resources() {
		if s.kinds.Family(alias) == gone {
			s.kinds.Remove(alias)
			tx.EndWatches(alias)
		}
	}
}

// Upgrade changes the version that the server reports and the defaults of some kinds, and
// ends all watches.
func (s *Server) Upgrade(version string, defaults map[schema.GroupResource]map[string]any) error {
	tx := s.store.Begin()
	defer tx.End()
	s.version.Store(version)
	for r, values := range defaults {
		kind := s.kinds.Stored(r)
		if kind == nil {
			return fmt.Errorf("upgrade to %s: %s is not served", version, r)
		}
		changed := *kind
		changed.Defaults = values
		changed.Changes++
		s.kinds.Install(kind.Family.With(&changed))
	}
	tx.EndAllWatches()
	return nil
}

// ForgetHistory removes the history that watches of one kind are served from, as a real
// server does when the schema of a custom kind changes.
func (s *Server) ForgetHistory(r schema.GroupResource) {
	tx := s.store.Begin()
	defer tx.End()
	if kind := s.kinds.Stored(r); kind != nil {
		changed := *kind // requests read the installed one without the lock
		changed.Oldest = tx.Revision()
		s.kinds.Install(kind.Family.With(&changed))
	}
}
