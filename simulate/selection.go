// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// selection is which objects of a kind a list or watch asks for.
type selection struct {
	kind      *kinds.Kind
	namespace string          // empty: all
	labels    labels.Selector // nil: any
	fields    fields.Selector // nil: any
	asks      bool            // a webhook may be asked what an object looks like
}

func (c *call) selection(opts *internalversion.ListOptions) selection {
	s := selection{kind: c.kind, namespace: c.namespace}
	if opts.LabelSelector != nil && !opts.LabelSelector.Empty() {
		s.labels = opts.LabelSelector
	}
	if opts.FieldSelector != nil && !opts.FieldSelector.Empty() {
		s.fields = opts.FieldSelector
	}
	return s
}

// all reports whether the selection takes every object of its namespace.
func (s selection) all() bool { return s.labels == nil && s.fields == nil }

// has reports whether obj is selected; nil never is.
func (s selection) has(obj *object.Object) bool {
	switch {
	case obj == nil, s.namespace != "" && obj.Meta().GetNamespace() != s.namespace:
		return false
	case s.labels != nil && !s.labels.Matches(object.LabelSet(obj)):
		return false
	}
	return s.fields == nil || s.fields.Matches(selectable{s.kind, s.read(obj)})
}

// read is obj as who reads it in the selection's kind sees it, where it is selected
// by fields that a CRD names. What a webhook would have to convert while the server
// is locked stays in the version that is stored.
func (s selection) read(obj *object.Object) *object.Object {
	if len(s.kind.Selectable) == 0 || s.kind.Family == nil {
		return obj
	}
	if s.kind.Family.Convert != nil && !s.asks {
		return s.kind.Family.Storage.Shaped(obj)
	}
	read, err := s.kind.Of(obj)
	if err != nil {
		return obj // who reads it is told
	}
	return read
}

// first is the first so many selected objects, if not 0, and how many were
// looked at for them.
func (s selection) first(objects []*object.Object, most int) (selected []*object.Object, looked int) {
	selected = []*object.Object{}
	for i, obj := range objects {
		if s.has(obj) {
			if selected = append(selected, obj); len(selected) == most {
				return selected, i + 1
			}
		}
	}
	return selected, len(objects)
}

// selectable is an object as a field selector sees it.
type selectable struct {
	kind *kinds.Kind
	obj  *object.Object
}

func (s selectable) Has(label string) bool {
	_, ok := s.kind.LabelOf(label)
	return ok
}

func (s selectable) Get(label string) string {
	l, _ := s.kind.LabelOf(label)
	return l.Value(s.obj.Fields)
}

// event is c as a watch with this selection sees it. Leaving the selection is
// a deletion that carries the old object at the new version.
func (s selection) event(c revisions.Change) (encode.Frame, bool) {
	was, is := s.has(c.Before), s.has(c.After)
	switch {
	case was && is:
		return encode.Frame{Type: encode.FrameModified, Object: c.After}, true
	case is:
		return encode.Frame{Type: encode.FrameAdded, Object: c.After}, true
	case was && c.After == nil:
		return encode.Frame{Type: encode.FrameDeleted, Object: c.Gone}, true
	case was:
		return encode.Frame{Type: encode.FrameDeleted, Object: c.Before.At(c.Revision)}, true
	}
	return encode.Frame{}, false
}
