// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection is which objects of a kind a list or watch asks for.
type selection struct {
	namespace string // empty: all
	labels    labels.Selector
	fields    fields.Selector
}

// parseSelection reads the selectors of a query. Of fields, those that every
// kind has are known.
func parseSelection(k *Kind, namespace string, query url.Values) (selection, error) {
	s := selection{namespace: namespace}
	var err error
	if s.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	if s.fields, err = fields.ParseSelector(query.Get("fieldSelector")); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range s.fields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return s, errNoSuchLabel(k.GroupVersionKind, r.Field)
		}
	}
	return s, nil
}

// has reports whether obj is selected; nil never is.
func (s selection) has(obj *object) bool {
	if obj == nil {
		return false
	}
	m := obj.meta()
	if s.namespace != "" && m.GetNamespace() != s.namespace {
		return false
	}
	return s.labels.Matches(labels.Set(m.GetLabels())) &&
		s.fields.Matches(fields.Set{"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace()})
}

// event is c as a watch with this selection sees it. Leaving the selection is
// a deletion that carries the old object at the new version.
func (s selection) event(c change) (frame, bool) {
	was, is := s.has(c.before), s.has(c.after)
	switch {
	case was && is:
		return frame{typ: frameModified, obj: c.after}, true
	case is:
		return frame{typ: frameAdded, obj: c.after}, true
	case was:
		return frame{typ: frameDeleted, obj: c.before.at(c.revision)}, true
	}
	return frame{}, false
}
