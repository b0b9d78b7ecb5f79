// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// Sibling returns the kind in another version, or nil if there is none.
func (k *Kind) Sibling(gv schema.GroupVersion) *Kind {
	if k.GroupVersion() == gv {
		return k
	}
	if k.Family == nil {
		return nil
	}
	for _, other := range k.Family.Versions {
		if other.GroupVersion() == gv {
			return other
		}
	}
	return nil
}

// ToStorage converts obj, an object of k, to the storage version.
func (k *Kind) ToStorage(obj *object.Object) (*object.Object, error) {
	if k.Family == nil || k == k.Family.Storage {
		return &object.Object{Fields: obj.Fields, Corrupt: obj.Corrupt, Shape: k.Schema, Defines: obj.Defines}, nil
	}
	return Convert(obj, k, k.Family.Storage)
}

// FromStorage converts a stored object to k.
func (k *Kind) FromStorage(obj *object.Object) (*object.Object, error) {
	if k.Family == nil || obj == nil {
		return obj, nil
	}
	return Convert(k.Family.Storage.Shaped(obj), k.Family.Storage, k)
}

// Shaped prunes and defaults a stored object by the current schema of its CRD, which may
// have changed since it was stored.
func (k *Kind) Shaped(obj *object.Object) *object.Object {
	schema, custom := k.Schema.(*customSchema)
	if !custom || obj.Shape == k.Schema || obj.Corrupt {
		return obj
	}
	obj = obj.Copy()
	_, _ = schema.Prune(obj.Fields) // what cannot be pruned is read unchanged
	schema.SetDefaults(obj.Fields)
	obj.Shape = k.Schema
	return obj
}

// Of converts obj, of any version of k's resource, to k.
func (k *Kind) Of(obj *object.Object) (*object.Object, error) {
	given, _ := obj.Fields["apiVersion"].(string)
	switch {
	case k.Family == nil || given == k.GroupVersion().String():
		return k.Shaped(obj), nil
	case given == "": // put by code that may omit it
		return k.FromStorage(obj)
	}
	version, err := schema.ParseGroupVersion(given)
	if err != nil {
		return nil, err
	}
	from := k.Sibling(version)
	if from == nil {
		return nil, fmt.Errorf("%s is not served in version %s", k.Kind, given)
	}
	out, err := Convert(from.Shaped(obj), from, k)
	if err != nil {
		return nil, ErrUnreadable(k, obj, err)
	}
	return out, nil
}

// Convert converts obj from one version to another. The result shares what does not differ.
func Convert(obj *object.Object, from, to *Kind) (*object.Object, error) {
	if from == to {
		return obj, nil
	}
	if from.Family == nil || from.Family.Convert == nil {
		out := &object.Object{Fields: Loose(obj, to).Object, Corrupt: obj.Corrupt, Defines: obj.Defines}
		return to.pruned(out), nil
	}
	out, err := from.Family.Convert(obj, from, to)
	if err != nil {
		return nil, err
	}
	return to.pruned(out), nil
}

// pruned returns a converted object without the fields that k does not have.
func (k *Kind) pruned(obj *object.Object) *object.Object {
	if schema, custom := k.Schema.(*customSchema); custom && !obj.Corrupt {
		obj = obj.Copy()
		_, _ = schema.Prune(obj.Fields)
	}
	return obj
}

// ErrUnreadable returns the error for a stored object that cannot be converted.
func ErrUnreadable(k *Kind, obj *object.Object, cause error) *apierrors.StatusError {
	return apierrors.NewInternalError(fmt.Errorf("StorageError: corrupt object, Code: 7, Key: /%s/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=%d: %w", k.Group, k.Resource, revisions.PathOf(obj.Key()), obj.Revision(), cause))
}
