// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/kube"
)

// PatchChanges sends the difference between from, an object as it was read, and to, a
// modified copy of it: a JSON merge patch of the object and, if the kind has a status
// subresource, one of the status. Equal fields are not sent, so fields that the Go type
// does not know, or that others have changed meanwhile, are kept. If nothing differs,
// there is no request and changed is false. An object from a Lister can be used as
// from:
//
//	to := kube.Copy(site)
//	to.Status.URL = url
//	changed, err := c.PatchChanges(ctx, site, to)
//
// If the status in from has only zero values, the whole status of to is sent, zeros
// included: a Go type cannot distinguish a zero that was never written, and is
// therefore missing where people and schemas expect it, from one that was.
//
// The patches apply only to the object with from's UID. A patch that changes a list, like
// the patch of a first status, also requires from's resourceVersion; if the object has
// changed since, the error is a *ConflictError. To require it for other fields too, pass
// Preconditions{ResourceVersion: from.GetResourceVersion()}.
//
// Of a list of objects, only the elements that differ are changed, by a JSON patch, so that
// the others keep fields that the Go type does not know. If from and to do not show which
// element became which, the object is first read from the server, which requires the right
// to get it. If the change would then remove unknown fields, the error is an
// *UnknownFieldsError.
//
// If an informer keeps only some fields of the objects, to must be a copy of from, and a
// change of a list needs the whole list: otherwise the error is a *ProjectedObjectError.
//
// from is not modified. to is set to the stored object. On an error to is unchanged,
// although the first of two patches, that of the object, may have been stored.
func (c *Client) PatchChanges(ctx context.Context, from, to kube.Object, opts ...Option) (changed bool, err error) {
	at, err := c.newCall(ctx, verbPatch, "", to, opts)
	if err != nil {
		return false, err
	}
	if err := c.private(at, to); err != nil {
		return false, err
	}
	if err := sameObject(from, to); err != nil {
		return false, at.wrap(err)
	}
	before, err := changeable(from, at)
	if err != nil {
		return false, at.wrap(err)
	}
	after, err := changeable(to, at)
	if err != nil {
		return false, at.wrap(err)
	}
	unsaid := !untyped(to) && jsontree.IsZero(before[statusName])
	known := projectionOf(c.opts.Observer, at, from)
	unsaid = unsaid && (known == nil || known.whole(statusName)) // else it may only be missing here
	if err := checkChange(c.opts.Observer, at, from, to, jsontree.MergePatch(before, after)); err != nil {
		return false, err
	}
	parts, guarded := changedParts(before, after, slices.Contains(at.resource.subresources, statusName), unsaid)
	if len(parts) == 0 {
		return false, nil
	}
	conditions := at.preconditions
	conditions.UID = cmp.Or(conditions.UID, from.GetUID())
	if guarded {
		conditions.ResourceVersion = cmp.Or(conditions.ResourceVersion, from.GetResourceVersion())
	}
	read := func(live kube.Object) error { return c.Get(ctx, at.key, live) }
	at.preconditions = conditions
	if err := at.elementwise(read, from, to, before, after, parts, unsaid); err != nil {
		return false, err
	}
	got := shallow(to)
	for i := 0; i < len(parts); i++ {
		part := parts[i]
		at.sub, at.preconditions = part.sub, conditions
		if i > 0 && conditions.ResourceVersion != "" {
			at.preconditions.ResourceVersion = got.GetResourceVersion()
		}
		patch := MergePatch(part.patch)
		if part.operations != nil {
			patch = JSONPatch(part.operations...)
			patch.elements = true
		}
		a, err := c.sendPatch(ctx, at, to, patch)
		if err != nil {
			return false, err
		}
		if err := c.readAnswer(at, a, got); err != nil {
			return false, err
		}
		if status, sent := part.patch[statusName]; sent && part.sub == "" && c.mapper.ignoredStatus(ctx, at, got, after) {
			again := []changedPart{{sub: statusName, patch: map[string]any{statusName: status}}}
			if part.operations != nil {
				if err := at.elementwise(read, from, to, before, after, again, unsaid); err != nil {
					return false, err
				}
			}
			parts = append(parts, again...)
		}
	}
	fill(to, got)
	return true, nil
}

// ignoredStatus reports whether the server did not take the status from a patch of the object,
// because the kind has a status subresource now: its CustomResourceDefinition may have gained
// one since the client learned the kind.
func (m *mapper) ignoredStatus(ctx context.Context, at *call, got kube.Object, wanted map[string]any) bool {
	is, err := changeable(got, at)
	if err != nil || reflect.DeepEqual(is[statusName], wanted[statusName]) {
		return false
	}
	now, err := m.ask(ctx, at.kind)
	return err == nil && slices.Contains(now.subresources, statusName)
}

// elementwise replaces the patches of parts that would replace lists of objects by ones that
// change their elements.
func (at *call) elementwise(read func(kube.Object) error, from, to kube.Object, before, after map[string]any, parts []changedPart, unsaid bool) error {
	if _, loose := to.(*unstructured.Unstructured); loose {
		return nil // it has all fields
	}
	var raw map[string]any
	for i := range parts {
		p := &parts[i]
		b, a := p.of(before), p.of(after)
		if !elementsChange(b, a) {
			continue
		}
		if err := at.ofVersion(from); err != nil {
			return at.wrap(err)
		}
		operations, unsure := operationsOf(b, a)
		if unsure == "" {
			p.operations = operations
			continue
		}
		if raw == nil {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(at.kind)
			err := read(live)
			if err != nil {
				return err
			}
			if raw, err = changeable(live, at); err != nil {
				return at.wrap(err)
			}
		}
		r := p.of(raw)
		edited, lossy := editFields("", r, b, a)
		if lossy != "" {
			return at.wrap(&UnknownFieldsError{Kind: at.kind, Key: at.key, List: lossy, fix: fixLoss})
		}
		p.patch = jsontree.MergePatch(r, edited)
		status, changed := p.patch[statusName].(map[string]any)
		if whole, is := a[statusName].(map[string]any); changed && is && unsaid {
			withZeros(status, whole)
		}
	}
	return nil
}

func sameObject(from, to kube.Object) error {
	switch {
	case isNil(from) || reflect.TypeOf(from) != reflect.TypeOf(to):
		return fmt.Errorf("the object as it was read is a %T and the changed one a %T; the two must be of one type, and not nil", from, to)
	case kube.KeyOf(from) != kube.KeyOf(to):
		return fmt.Errorf("the object as it was read is %s; a name cannot be changed", kube.KeyOf(from))
	case from.GetUID() == "" || from.GetResourceVersion() == "":
		return errors.New("the object as it was read has no uid or resourceVersion; pass one that was read from the server")
	}
	return nil
}

// changedPart is the patch of the object or of one subresource.
type changedPart struct {
	sub        string
	apart      bool // the status has a part of its own
	patch      map[string]any
	operations []JSONOp // if not nil, in place of the merge patch
}

// of returns the fields of an object that the part concerns.
func (p changedPart) of(object map[string]any) map[string]any {
	status, has := object[statusName]
	if p.sub == statusName {
		return map[string]any{statusName: status}
	}
	if has && p.apart {
		object = maps.Clone(object)
		delete(object, statusName)
	}
	return object
}

// changedParts returns the non-empty patches that turn before into after: of the object
// and, if apart is set, separately of its status. If unsaid is set, the patch of the
// status includes zeros. replacesList reports whether a patch replaces a list, and so
// depends on the previous content of that list.
func changedParts(before, after map[string]any, apart, unsaid bool) (parts []changedPart, replacesList bool) {
	object := jsontree.MergePatch(before, after)
	status, _ := object[statusName].(map[string]any)
	if whole, is := after[statusName].(map[string]any); is && status != nil && unsaid {
		withZeros(status, whole)
		replacesList = true // in effect: it replaces what was not there
	}
	replacesList = replacesList || listIn(object, before)
	if status, changed := object[statusName]; changed && apart {
		delete(object, statusName)
		parts = append(parts, changedPart{sub: statusName, patch: map[string]any{statusName: status}})
	}
	if len(object) > 0 {
		parts = slices.Insert(parts, 0, changedPart{apart: apart, patch: object})
	}
	return parts, replacesList
}

// withZeros adds to a merge patch the fields of after that it lacks.
func withZeros(patch, after map[string]any) {
	for name, value := range after {
		part, sent := patch[name].(map[string]any)
		whole, is := value.(map[string]any)
		switch _, there := patch[name]; {
		case !there && value != nil:
			patch[name] = value
		case sent && is:
			withZeros(part, whole)
		}
	}
}

// listIn reports whether a merge patch of before replaces or removes a list.
func listIn(patch, before any) bool {
	switch p := patch.(type) {
	case []any:
		return true
	case map[string]any:
		b, _ := before.(map[string]any)
		for name, value := range p {
			if listIn(value, b[name]) {
				return true
			}
		}
	case nil:
		return before != nil && listIn(before, nil)
	}
	return false
}
