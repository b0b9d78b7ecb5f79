// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/gotypes"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Put creates obj or replaces what is stored under its name, whatever its
// version, as somebody else would. It returns the new resourceVersion. A typed
// object needs no apiVersion and kind when it is built in.
func (s *Server) Put(obj runtime.Object) (resourceVersion string, err error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		kinds, _, err := gotypes.Scheme().ObjectKinds(obj)
		if err != nil {
			return "", fmt.Errorf("put %T: %w; set its apiVersion and kind", obj, err)
		}
		gvk = kinds[0]
	}
	next, err := object.ObjectOf(obj)
	if err == nil && gvk.GroupKind() == models.DefinitionKind.GroupKind() {
		err = completeDefinition(next)
	}
	if err != nil {
		return "", fmt.Errorf("put %s: %w", gvk.Kind, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := s.kindLocked(gvk)
	if kind == nil {
		return "", fmt.Errorf("put %s: the server does not serve the kind; Install it", gvk)
	}
	if f := kind.family; f.definition == nil && kind != f.storage { // no webhook is asked
		if next, err = kind.toStorage(next); err != nil {
			return "", fmt.Errorf("put %s: %w", gvk.Kind, err)
		}
		kind = f.storage
	}
	m := next.Meta()
	m.SetResourceVersion("")
	m.SetUID("")
	old := s.mu.log.Get(kind.held(), next.Key())
	if old == nil {
		next, err = s.createLocked(kind, next)
	} else {
		m.SetResourceVersion(old.Meta().GetResourceVersion())
		next, err = s.updateLocked(kind, old, next)
	}
	if err != nil {
		return "", fmt.Errorf("put %s: %w", gvk.Kind, err)
	}
	return next.Meta().GetResourceVersion(), nil
}

func (s *Server) kindLocked(gvk schema.GroupVersionKind) *Kind {
	return s.mu.kinds[gvk]
}

// storedLocked is the version of a resource that the log holds; nil: the
// server does not serve it.
func (s *Server) storedLocked(r schema.GroupResource) *Kind {
	if f := s.mu.families[r]; f != nil {
		return f.storage
	}
	return nil
}

// heldLocked is the resource that the log holds the objects of r under.
func (s *Server) heldLocked(r schema.GroupResource) schema.GroupResource {
	if f := s.mu.families[r]; f != nil {
		return f.resource
	}
	return r
}

// Remove deletes an object, as somebody else would: while it has finalizers it
// stays, marked.
func (s *Server) Remove(r schema.GroupResource, key types.NamespacedName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := s.storedLocked(r)
	old := s.mu.log.Get(s.heldLocked(r), key)
	if kind == nil || old == nil {
		return fmt.Errorf("remove %s %s: there is none", r, key)
	}
	_, _, err := s.deleteLocked(kind, old, &metav1.DeleteOptions{})
	return err
}

// Objects is everything of a kind as it is now, in the order of keys.
func (s *Server) Objects(r schema.GroupResource) []metav1.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects, _ := s.mu.log.List(s.heldLocked(r), s.mu.log.Revision)
	var out []metav1.Object
	for _, o := range objects {
		out = append(out, o.Copy().Meta())
	}
	return out
}

// Install serves another kind, as when its CRD is created.
func (s *Server) Install(kind Kind) {
	k := kind.completed()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installLocked(familyOf(k))
}

// ChangeSchema gives a kind other defaults and ends its watches, as a change
// of its CRD does. Objects change with it, their resourceVersions do not.
func (s *Server) ChangeSchema(r schema.GroupResource, defaults map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := s.storedLocked(r)
	if kind == nil {
		return fmt.Errorf("change schema of %s: the server does not serve it", r)
	}
	changed := *kind
	changed.Defaults = defaults
	s.replaceLocked(kind.family.with(&changed))
	return nil
}

// Uninstall deletes a kind with its objects, as the deletion of its CRD does:
// each is told of, the watches end, and from then on it is not there. Events go in
// both of their groups.
func (s *Server) Uninstall(r schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, gone := s.heldLocked(r), s.mu.families[r]
	objects, _ := s.mu.log.List(held, s.mu.log.Revision)
	for _, o := range objects {
		s.takeLocked(held, o.Key())
	}
	for alias, f := range s.mu.families {
		if f == gone {
			s.removeFamilyLocked(alias)
			s.endLocked(alias)
		}
	}
}

func (s *Server) endLocked(r schema.GroupResource) {
	s.eachWatchLocked(func(w *watch) {
		if w.kind.resource() == r {
			w.over = true
		}
	})
}
