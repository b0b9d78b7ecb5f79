// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package fieldmanager says who owns which field after a write (managedFields), and
// what a server-side apply makes of an object. It asks the field manager of
// apimachinery once for writes of one shape and answers the others from what
// package ownership remembers, with the same result. It sees kinds, and no
// requests.
package fieldmanager

import (
	"crypto/sha256"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
	"github.com/flyball-dev/flyball/simulate/internal/wire"
)

// Writer is who writes an object, or a subresource of it, and how.
type Writer struct {
	Kind        *kinds.Kind
	Subresource string
	Manager     string // who is said to own what is written
	Force       bool   // an apply takes what others own
}

// Own notes in obj who has written what of it since old; nil: all of it.
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

// ownAs is own, for a write of a shape that can be remembered.
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

// askManager has the field manager say who owns what.
func (q Writer) askManager(old, obj *object.Object) error {
	if ok, err := q.manage(old, obj); err != nil || ok {
		return err
	}
	// As a real server: the write goes on with the entries there were.
	live := q.Kind.Nothing()
	if old != nil {
		live = kinds.Loose(old, q.Kind)
	}
	obj.Meta().SetManagedFields(live.GetManagedFields())
	return nil
}

// manage is askManager; false: the field manager cannot say.
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

// keepTimes takes back a new time of an entry when nothing else has changed.
func keepTimes(old, obj *object.Object) {
	a, _ := old.Fields["metadata"].(map[string]any)
	b, _ := obj.Fields["metadata"].(map[string]any)
	was, _ := a["managedFields"].([]any)
	is, _ := b["managedFields"].([]any)
	if len(was) != len(is) || len(is) == 0 || !jsonvalue.SameBut(old.Fields, obj.Fields, "metadata", "kind", "apiVersion") || !jsonvalue.SameBut(a, b, "managedFields") {
		return
	}
	for i := range is {
		x, _ := was[i].(map[string]any)
		y, _ := is[i].(map[string]any)
		if !jsonvalue.SameBut(x, y, "time") {
			return
		}
	}
	b["managedFields"] = was
}

// notOwnedOfMetadata is what of metadata nobody comes to own by a write.
var notOwnedOfMetadata = []string{"name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion"}

// shapeOf is the shape of the write of obj in place of old; nil: of nothing. It
// is false for a write that is not worth to be remembered.
func (q Writer) shapeOf(old, obj *object.Object) (of ownership.Shape, ok bool) {
	if given := ownership.EntriesOf(obj); len(given) > 0 && (old == nil || !jsonvalue.Equal(given, ownership.EntriesOf(old))) {
		return of, false
	}
	return q.shape('u', old, obj.Fields, notOwnedOfMetadata...)
}

// shapeOfApply is the same for an apply.
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

// lastAppliedManager is a manager for which a field manager looks at an
// annotation's value.
const lastAppliedManager = "kubectl"

// shapeRooms are where shapes are written down.
var shapeRooms = sync.Pool{New: func() any { return new([]byte) }}

func (q Writer) shape(how byte, old *object.Object, is map[string]any, notOfMetadata ...string) (of ownership.Shape, ok bool) {
	rules, err := q.Kind.Rules()
	if err != nil || rules == nil || old != nil && old.Poison {
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

// notOwnedPart is the part of an object whose fields change hands by no such
// write; empty: none.
func (q Writer) notOwnedPart() string {
	switch {
	case q.Subresource == "" && q.Kind.Status:
		return "status"
	case q.Subresource == "status":
		return "spec"
	}
	return ""
}

// entries appends who owns what before, but since when.
func (s *shaping) entries(list []any, version string) bool {
	if len(list) > ownership.FewManagers {
		return false
	}
	for _, each := range list {
		entry, _ := each.(map[string]any)
		if entry["apiVersion"] != version {
			return false // it is held against the object in that version
		}
		var err error
		if s.to, err = wire.AppendFields(s.to, entry, "time"); err != nil || len(s.to) > ownership.LargestShape {
			return false
		}
	}
	return true
}
