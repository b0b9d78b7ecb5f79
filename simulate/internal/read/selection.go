// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package read

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/sharding"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// Selection is which objects of a kind a list or watch asks for.
type Selection struct {
	Kind      *kinds.Kind
	Namespace string            // empty: all
	labels    labels.Selector   // nil: any
	fields    fields.Selector   // nil: any
	shard     sharding.Selector // nil: any
	// Converts lets the selection call a conversion webhook. It must be false while the
	// server is locked.
	Converts bool
}

// All reports whether the selection includes every object of its namespace.
func (s Selection) All() bool { return s.labels == nil && s.fields == nil && s.shard == nil }

// Has reports whether obj is selected; nil never is.
func (s Selection) Has(obj *object.Object) bool {
	switch {
	case obj == nil, s.Namespace != "" && obj.Meta().GetNamespace() != s.Namespace:
		return false
	case s.labels != nil && !s.labels.Matches(object.LabelSet(obj)):
		return false
	case s.shard != nil && !s.inShard(obj):
		return false
	}
	return s.fields == nil || s.fields.Matches(selectable{s.Kind, s.read(obj)})
}

// inShard reports whether obj is in the selected shard.
func (s Selection) inShard(obj *object.Object) bool {
	in, err := s.shard.Matches(obj.Meta())
	return in && err == nil // all ranges are of one field, so there is no error
}

// shardInfo returns what a list says of its shard; nil if it is of all shards.
func (s Selection) shardInfo() *metav1.ShardInfo {
	if s.shard == nil {
		return nil
	}
	return &metav1.ShardInfo{Selector: s.shard.String()}
}

// read returns obj in the version of the selection's kind, if a CRD names the selectable
// fields. Without Converts, an object that only a webhook can convert stays in the stored
// version.
func (s Selection) read(obj *object.Object) *object.Object {
	if len(s.Kind.Selectable) == 0 || s.Kind.Family == nil {
		return obj
	}
	if s.Kind.Family.Convert != nil && !s.Converts {
		return s.Kind.Family.Storage.Shaped(obj)
	}
	read, err := s.Kind.Of(obj)
	if err != nil {
		return obj // the reader gets the error
	}
	return read
}

// Span returns the keys that the selection is within.
func (s Selection) Span() revisions.Span { return revisions.SpanOf(s.Namespace, "") }

// First returns the first selected objects, at most that many if not 0, and how many
// objects it examined.
func (s Selection) First(objects []*object.Object, most int) (selected []*object.Object, looked int) {
	selected = []*object.Object{}
	for i, obj := range objects {
		if s.Has(obj) {
			if selected = append(selected, obj); len(selected) == most {
				return selected, i + 1
			}
		}
	}
	return selected, len(objects)
}

// selectable implements fields.Fields for an object.
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

// Event returns the event of a change for a watch with this selection, and whether there
// is one. An object that leaves the selection is deleted: the event has the old object at
// the new version.
func (s Selection) Event(c revisions.Change) (revisions.Event, bool) {
	was, is := s.Has(c.Before), s.Has(c.After)
	switch {
	case was && is:
		return revisions.Event{Type: revisions.Modified, Object: c.After}, true
	case is:
		return revisions.Event{Type: revisions.Added, Object: c.After}, true
	case was && c.After == nil:
		return revisions.Event{Type: revisions.Deleted, Object: c.Gone}, true
	case was:
		return revisions.Event{Type: revisions.Deleted, Object: c.Before.At(c.Revision)}, true
	}
	return revisions.Event{}, false
}
