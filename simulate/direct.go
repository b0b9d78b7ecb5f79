// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/deletion"
	"github.com/flyball-dev/flyball/simulate/internal/gotypes"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
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
		err = kinds.CompleteDefinition(next)
	}
	if err != nil {
		return "", fmt.Errorf("put %s: %w", gvk.Kind, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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
	old := s.mu.log.Get(kind.Held(), next.Key())
	if old == nil {
		next, err = s.storeLocked().direct().Create(kind, next)
	} else {
		m.SetResourceVersion(old.Meta().GetResourceVersion())
		next, err = s.storeLocked().direct().Update(kind, old, next)
	}
	if err != nil {
		return "", fmt.Errorf("put %s: %w", gvk.Kind, err)
	}
	return next.Meta().GetResourceVersion(), nil
}

// Remove deletes an object, as somebody else would: while it has finalizers it
// stays, marked.
func (s *Server) Remove(r schema.GroupResource, key types.NamespacedName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := s.kinds.Stored(r)
	old := s.mu.log.Get(s.kinds.Held(r), key)
	if kind == nil || old == nil {
		return fmt.Errorf("remove %s %s: there is none", r, key)
	}
	_, _, err := deletion.Delete(s.storeLocked(), kind, old, &metav1.DeleteOptions{})
	return err
}

// Objects is everything of a kind as it is now, in the order of keys.
func (s *Server) Objects(r schema.GroupResource) []metav1.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects, _ := s.mu.log.List(s.kinds.Held(r), s.mu.log.Revision)
	var out []metav1.Object
	for _, o := range objects {
		out = append(out, o.Copy().Meta())
	}
	return out
}

// ChangeSchema gives a kind other defaults and ends its watches, as a change
// of its CRD does. Objects change with it, their resourceVersions do not.
func (s *Server) ChangeSchema(r schema.GroupResource, defaults map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := s.kinds.Stored(r)
	if kind == nil {
		return fmt.Errorf("change schema of %s: the server does not serve it", r)
	}
	changed := *kind
	changed.Defaults = defaults
	s.definitions.Replace(kind.Family.With(&changed), s.mu.log.Revision)
	return nil
}

// Uninstall deletes a kind with its objects, as the deletion of its CRD does:
// each is told of, the watches end, and from then on it is not there. Events go in
// both of their groups.
func (s *Server) Uninstall(r schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, gone := s.kinds.Held(r), s.kinds.Family(r)
	objects, _ := s.mu.log.List(held, s.mu.log.Revision)
	for _, o := range objects {
		s.takeLocked(held, o.Key())
	}
	for _, alias := range s.kinds.Resources() {
		if s.kinds.Family(alias) == gone {
			s.kinds.Remove(alias)
			s.endLocked(alias)
		}
	}
}

func (s *Server) endLocked(r schema.GroupResource) {
	s.eachWatchLocked(func(w *watch) {
		if w.kind.GroupResource() == r {
			w.over = true
		}
	})
}

// Upgrade makes the server one of another version, with other defaults of some
// kinds, and ends all watches.
func (s *Server) Upgrade(version string, defaults map[schema.GroupResource]map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.version = version
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
	s.eachWatchLocked(func(w *watch) { w.over = true })
	return nil
}

// ForgetHistory forgets what watches of one kind are served from, as a real
// server does when the schema of a custom kind changes.
func (s *Server) ForgetHistory(r schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind := s.kinds.Stored(r); kind != nil {
		kind.Oldest = s.mu.log.Revision
	}
}
