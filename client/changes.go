// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/flyball-dev/flyball/informer"
)

// PatchChanges sends the difference between from, an object as it was read, and to, a
// modified copy of it: a JSON merge patch of the object and, if the kind has a status
// subresource, one of the status. Equal fields are not sent, so fields that the Go type
// does not know, or that others have changed meanwhile, are kept. If nothing differs,
// there is no request and changed is false. An object from a Lister can be used as
// from:
//
//	to := informer.Copy(site)
//	to.Status.URL = url
//	changed, err := c.PatchChanges(ctx, site, to)
//
// If the status in from has only zero values, the whole status of to is sent, zeros
// included: a Go type cannot distinguish a zero that was never written, and is
// therefore missing where people and schemas expect it, from one that was.
//
// The patches apply only to the object with from's UID. A patch that contains a list
// replaces it as a whole and, like the patch of a first status, also requires from's
// resourceVersion; if the object has changed since, the error is a *ConflictError. To
// require it for other fields too, pass Preconditions{ResourceVersion:
// from.GetResourceVersion()}.
//
// If an informer keeps only some fields of the objects, to must be a copy of from, and a
// change of a list needs the whole list: otherwise the error is a *ProjectedObjectError.
//
// from is not modified. to is set to the stored object. On an error to is unchanged,
// although the first of two patches, that of the object, may have been stored.
func (c *Client) PatchChanges(ctx context.Context, from, to informer.Object, opts ...Option) (changed bool, err error) {
	at, err := c.aim(ctx, verbPatch, "", to, opts)
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
	unsaid := !untyped(to) && saysNothing(before[statusName])
	known := projectionOf(c.opts.Observer, at, from)
	unsaid = unsaid && (known == nil || known.whole(statusName)) // else it may only be missing here
	if err := checkChange(c.opts.Observer, at, from, to, difference(before, after)); err != nil {
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
	got := shallow(to)
	for i, part := range parts {
		at.sub, at.preconditions = part.sub, conditions
		if i > 0 && conditions.ResourceVersion != "" {
			at.preconditions.ResourceVersion = got.GetResourceVersion()
		}
		a, err := c.sendPatch(ctx, at, to, MergePatch(part.patch))
		if err != nil {
			return false, err
		}
		if err := c.settled(at, a, got); err != nil {
			return false, err
		}
	}
	fill(to, got)
	return true, nil
}

func sameObject(from, to informer.Object) error {
	switch {
	case isNil(from) || reflect.TypeOf(from) != reflect.TypeOf(to):
		return fmt.Errorf("the object as it was read is a %T and the changed one a %T; the two must be of one type, and not nil", from, to)
	case informer.KeyOf(from) != informer.KeyOf(to):
		return fmt.Errorf("the object as it was read is %s; a name cannot be changed", informer.KeyOf(from))
	case from.GetUID() == "" || from.GetResourceVersion() == "":
		return errors.New("the object as it was read has no uid or resourceVersion; pass one that was read from the server")
	}
	return nil
}

// changeable returns obj as JSON values, without the fields that the server sets.
func changeable(obj informer.Object, at *call) (map[string]any, error) {
	t, err := tree(obj, at.kind)
	if metadata, ok := t["metadata"].(map[string]any); ok {
		for _, field := range setByServer {
			delete(metadata, field)
		}
	}
	return t, err
}

// changedPart is the merge patch of the object or of one subresource.
type changedPart struct {
	sub   string
	patch map[string]any
}

// changedParts returns the non-empty patches that turn before into after: of the object
// and, if apart is set, separately of its status. If unsaid is set, the patch of the
// status includes zeros. replacesList reports whether a patch replaces a list, and so
// depends on the previous content of that list.
func changedParts(before, after map[string]any, apart, unsaid bool) (parts []changedPart, replacesList bool) {
	object := difference(before, after)
	status, _ := object[statusName].(map[string]any)
	if whole, is := after[statusName].(map[string]any); is && status != nil && unsaid {
		withZeros(status, whole)
		replacesList = true // in effect: it replaces what was not there
	}
	replacesList = replacesList || listIn(object, before)
	if status, changed := object[statusName]; changed && apart {
		delete(object, statusName)
		parts = append(parts, changedPart{statusName, map[string]any{statusName: status}})
	}
	if len(object) > 0 {
		parts = slices.Insert(parts, 0, changedPart{"", object})
	}
	return parts, replacesList
}

// saysNothing reports whether a JSON value holds only zeros.
func saysNothing(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, field := range v {
			if !saysNothing(field) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return reflect.ValueOf(value).IsZero()
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
