// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// sibling is the kind in another version; nil: there is none.
func (k *Kind) sibling(gv schema.GroupVersion) *Kind {
	if k.GroupVersion() == gv {
		return k
	}
	if k.family == nil {
		return nil
	}
	for _, other := range k.family.versions {
		if other.GroupVersion() == gv {
			return other
		}
	}
	return nil
}

// toStorage is obj, which is of k, in the version that the log holds.
func (k *Kind) toStorage(obj *object.Object) (*object.Object, error) {
	if k.family == nil || k == k.family.storage {
		return &object.Object{Fields: obj.Fields, Poison: obj.Poison, Shape: k.schema, Defines: obj.Defines}, nil
	}
	return convert(obj, k, k.family.storage)
}

// fromStorage is what the log holds as an object of k.
func (k *Kind) fromStorage(obj *object.Object) (*object.Object, error) {
	if k.family == nil || obj == nil {
		return obj, nil
	}
	return convert(k.family.storage.shaped(obj), k.family.storage, k)
}

// shaped is a stored object of k as its CRD has it now, which may be another
// than when it was stored: pruned, and with its defaults.
func (k *Kind) shaped(obj *object.Object) *object.Object {
	schema, custom := k.schema.(*customSchema)
	if !custom || obj.Shape == k.schema || obj.Poison {
		return obj
	}
	obj = obj.Copy()
	_, _ = schema.Prune(obj.Fields) // what cannot be pruned is read as it is
	schema.SetDefaults(obj.Fields)
	obj.Shape = k.schema
	return obj
}

// of is obj, which is of some version of k's resource, as an object of k.
func (k *Kind) of(obj *object.Object) (*object.Object, error) {
	given, _ := obj.Fields["apiVersion"].(string)
	switch {
	case k.family == nil || given == k.GroupVersion().String():
		return k.shaped(obj), nil
	case given == "": // put by who need not say it
		return k.fromStorage(obj)
	}
	version, err := schema.ParseGroupVersion(given)
	if err != nil {
		return nil, err
	}
	from := k.sibling(version)
	if from == nil {
		return nil, fmt.Errorf("%s is not served in version %s", k.Kind, given)
	}
	out, err := convert(from.shaped(obj), from, k)
	if err != nil {
		return nil, errUnreadable(k, obj, err)
	}
	return out, nil
}

// convert is obj, of one version, as an object of another. It shares what does
// not differ.
func convert(obj *object.Object, from, to *Kind) (*object.Object, error) {
	if from == to {
		return obj, nil
	}
	if from.family == nil || from.family.convert == nil {
		out := &object.Object{Fields: loose(obj, to).Object, Poison: obj.Poison, Defines: obj.Defines}
		return to.pruned(out), nil
	}
	out, err := from.family.convert(obj, from, to)
	if err != nil {
		return nil, err
	}
	return to.pruned(out), nil
}

// pruned is a converted object without what k does not have.
func (k *Kind) pruned(obj *object.Object) *object.Object {
	if schema, custom := k.schema.(*customSchema); custom && !obj.Poison {
		obj = obj.Copy()
		_, _ = schema.Prune(obj.Fields)
	}
	return obj
}
