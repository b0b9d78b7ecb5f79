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

// PatchChanges sends what differs between from, an object as it was read, and to,
// a changed copy of it: as a JSON merge patch of the object and, where the kind
// has a status subresource, one of the status, each only if there is something in
// it. What is equal is not sent, so fields that to's Go type does not know, or
// that others have changed meanwhile, stay as they are; if nothing differs there
// is no request and changed is false. Who reads from a Lister has from already:
//
//	to := informer.Copy(site)
//	to.Status.URL = url
//	changed, err := c.PatchChanges(ctx, site, to)
//
// Of a status in which nothing but zeros was read, all that to has is sent: a Go
// type does not tell a zero that was never written, and is missing where people
// and schemas look for it, from one that was.
//
// The patches hold for the object with from's UID alone. A list is replaced whole,
// so a patch with one in it, like one of a first status, also holds only for from's
// resourceVersion; if the
// object has changed since, the error is a *ConflictError. For the same care with
// single fields pass Preconditions{ResourceVersion: from.GetResourceVersion()}.
//
// from is read and never written. to becomes what the server stored; on an error
// it is left as it was, though of two patches the first, that of the object, may
// have been stored.
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

// changeable is obj as JSON values, without what the server sets.
func changeable(obj informer.Object, at *call) (map[string]any, error) {
	t, err := tree(obj, at.kind)
	if metadata, ok := t["metadata"].(map[string]any); ok {
		for _, field := range setByServer {
			delete(metadata, field)
		}
	}
	return t, err
}

// changedPart is the merge patch of the object, or of a subresource of it.
type changedPart struct {
	sub   string
	patch map[string]any
}

// changedParts are the patches that turn one tree into another, of the object and
// of its status if that is written apart, those with something in them.
// The zeros of a status that is unsaid are part of the patch.
// replacesList says whether one of them replaces a list, and so builds on what
// was in it.
func changedParts(before, after map[string]any, apart, unsaid bool) (parts []changedPart, replacesList bool) {
	object := difference(before, after)
	status, _ := object[statusName].(map[string]any)
	if whole, is := after[statusName].(map[string]any); is && status != nil && unsaid {
		withZeros(status, whole)
		replacesList = true // as good as: it replaces what was not there
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

// saysNothing says whether there is nothing but zeros in a JSON value.
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

// withZeros adds to a merge patch what it leaves out of after, the outcome.
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

// listIn says whether a merge patch of before replaces or removes a list.
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
