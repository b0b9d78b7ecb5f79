// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package fieldmanager computes who owns which field after a write (managedFields), and the
// result of a server-side apply. It asks the field manager of apimachinery once for writes
// of one shape and answers the others from the memory of package ownership, with the same
// result. It sees kinds, and no requests.
package fieldmanager

import (
	"crypto/sha256"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
	"github.com/flyball-dev/flyball/simulate/internal/wire"
)

// Writer describes a writer of an object or of its subresource.
type Writer struct {
	Kind        *kinds.Kind
	Subresource string
	Manager     string // the owner of what is written
	Force       bool   // an apply takes over fields of other owners
}

// Own updates the managed fields of obj for a write that replaces old; old is nil for a new
// object.
func (q Writer) Own(old, obj *object.Object) error {
	of, ok := q.shapeOf(old, obj)
	if !ok {
		if err := q.askManager(old, obj); err != nil {
			return err
		}
	} else if err := q.ownAs(of, old, obj); err != nil {
		return err
	}
	if old != nil {
		keepTimes(old, obj)
	}
	return nil
}

// ownAs is Own for a write whose shape can be remembered.
func (q Writer) ownAs(of ownership.Shape, old, obj *object.Object) error {
	now, before := ownership.EntryTime(time.Now()), ownership.EntriesOf(old)
	known := q.Kind.Managers.Said.Recall(of)
	if known == nil {
		asked := &object.Object{Fields: ownership.WithEntries(obj.Fields, nil)}
		was := old
		if old != nil {
			was = &object.Object{Fields: ownership.WithEntries(old.Fields, ownership.Marked(before))}
		}
		switch ok, err := q.manage(was, asked); {
		case err != nil:
			return err
		case !ok:
			return q.askManager(old, obj)
		}
		known = ownership.OwnershipOf(ownership.EntriesOf(asked), len(before))
		q.Kind.Managers.Said.Remember(of, known)
	}
	ownership.SetEntries(obj, known.After(before, now))
	return nil
}

// askManager updates the managed fields through the field manager.
func (q Writer) askManager(old, obj *object.Object) error {
	if ok, err := q.manage(old, obj); err != nil || ok {
		return err
	}
	// As on a real server: the write continues with the previous entries.
	live := q.Kind.Nothing()
	if old != nil {
		live = kinds.Loose(old, q.Kind)
	}
	obj.Meta().SetManagedFields(live.GetManagedFields())
	return nil
}

// manage is askManager; false means that the field manager failed.
func (q Writer) manage(old, obj *object.Object) (bool, error) {
	fields, err := q.Kind.FieldManager(q.Subresource)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	live := q.Kind.Nothing()
	if old != nil {
		live = kinds.Loose(old, q.Kind)
	}
	next, err := fields.Update(live, obj.Meta(), q.Manager)
	if err != nil {
		return false, nil
	}
	if u, ok := next.(*unstructured.Unstructured); ok {
		obj.Fields = u.Object
	}
	return true, nil
}

// keepTimes restores the time of an entry if nothing else changed.
func keepTimes(old, obj *object.Object) {
	a, _ := old.Fields["metadata"].(map[string]any)
	b, _ := obj.Fields["metadata"].(map[string]any)
	was, _ := a["managedFields"].([]any)
	is, _ := b["managedFields"].([]any)
	if len(was) != len(is) || len(is) == 0 || !jsontree.SameBut(old.Fields, obj.Fields, "metadata", "kind", "apiVersion") || !jsontree.SameBut(a, b, "managedFields") {
		return
	}
	for i := range is {
		x, _ := was[i].(map[string]any)
		y, _ := is[i].(map[string]any)
		if !jsontree.SameBut(x, y, "time") {
			return
		}
	}
	b["managedFields"] = was
}

// notOwnedOfMetadata are the fields of metadata that a write does not make anyone own.
var notOwnedOfMetadata = []string{"name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion"}

// shapeOf returns the shape of a write that replaces old by obj; old is nil for a new
// object. It returns false if the write is not worth remembering.
func (q Writer) shapeOf(old, obj *object.Object) (of ownership.Shape, ok bool) {
	if given := ownership.EntriesOf(obj); len(given) > 0 && (old == nil || !jsontree.Equal(given, ownership.EntriesOf(old))) {
		return of, false
	}
	return q.shape('u', old, obj.Fields, notOwnedOfMetadata...)
}

// shapeOfApply is shapeOf for an apply.
func (q Writer) shapeOfApply(old *object.Object, given map[string]any) (of ownership.Shape, ok bool) {
	if q.Manager == lastAppliedManager || given["apiVersion"] != q.Kind.GroupVersion().String() || given["kind"] != q.Kind.Kind {
		return of, false
	}
	how := byte('a')
	if q.Force {
		how = 'f'
	}
	return q.shape(how, old, given, "managedFields")
}

// lastAppliedManager is the manager for which a field manager reads the value of an
// annotation.
const lastAppliedManager = "kubectl"

// shapeRooms pools the buffers of shapes.
var shapeRooms = sync.Pool{New: func() any { return new([]byte) }}

func (q Writer) shape(how byte, old *object.Object, is map[string]any, notOfMetadata ...string) (of ownership.Shape, ok bool) {
	rules, err := q.Kind.Rules()
	if err != nil || rules == nil || old != nil && old.Corrupt {
		return of, false
	}
	live := q.Kind.NothingShared()
	if old != nil {
		live = old.Fields
	}
	room, _ := shapeRooms.Get().(*[]byte)
	s := &shaping{schema: rules.Schema, to: append((*room)[:0], how)}
	defer func() {
		*room = s.to
		shapeRooms.Put(room)
	}()
	s.word(q.Subresource)
	s.word(q.Manager)
	if old != nil {
		s.to = append(s.to, 'o')
	}
	if !s.entries(ownership.EntriesOf(old), q.Kind.GroupVersion().String()) {
		return of, false
	}
	was, _ := live["metadata"].(map[string]any)
	now, _ := is["metadata"].(map[string]any)
	root, ok := s.schema.Resolve(rules.Root)
	if !ok || root.Map == nil || was == nil && old != nil || now == nil {
		return of, false
	}
	metadata, ok := s.schema.Resolve(typeOf(root.Map, "metadata"))
	if !ok || metadata.Map == nil || !s.fields(was, now, metadata.Map, notOfMetadata...) {
		return of, false
	}
	but := []string{"metadata", "kind", "apiVersion"}
	if part := q.notOwnedPart(); part != "" && (how == 'u' || is[part] == nil) {
		s.word(part)
		if but = append(but, part); !s.look(live[part]) || !s.look(is[part]) {
			return of, false
		}
	}
	if !s.fields(live, is, root.Map, but...) || len(s.to) > ownership.LargestShape {
		return of, false
	}
	return sha256.Sum256(s.to), true
}

// notOwnedPart returns the part of an object whose fields such a write does not own; empty:
// there is none.
func (q Writer) notOwnedPart() string {
	switch {
	case q.Subresource == "" && q.Kind.Status:
		return "status"
	case q.Subresource == "status":
		return "spec"
	}
	return ""
}

// entries appends the previous owners, without their times.
func (s *shaping) entries(list []any, version string) bool {
	if len(list) > ownership.FewManagers {
		return false
	}
	for _, each := range list {
		entry, _ := each.(map[string]any)
		if entry["apiVersion"] != version {
			return false // it is compared with the object in that version
		}
		var err error
		if s.to, err = wire.AppendFields(s.to, entry, "time"); err != nil || len(s.to) > ownership.LargestShape {
			return false
		}
	}
	return true
}
