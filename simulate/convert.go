// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
func (k *Kind) toStorage(obj *object) (*object, error) {
	if k.family == nil || k == k.family.storage {
		return &object{fields: obj.fields, poison: obj.poison, shape: k.schema, defines: obj.defines}, nil
	}
	return convert(obj, k, k.family.storage)
}

// fromStorage is what the log holds as an object of k.
func (k *Kind) fromStorage(obj *object) (*object, error) {
	if k.family == nil || obj == nil {
		return obj, nil
	}
	return convert(k.family.storage.shaped(obj), k.family.storage, k)
}

// shaped is a stored object of k as its CRD has it now, which may be another
// than when it was stored: pruned, and with its defaults.
func (k *Kind) shaped(obj *object) *object {
	schema, custom := k.schema.(*customSchema)
	if !custom || obj.shape == k.schema || obj.poison {
		return obj
	}
	obj = obj.copy()
	_, _ = schema.prune(obj.fields) // what cannot be pruned is read as it is
	schema.setDefaults(obj.fields)
	obj.shape = k.schema
	return obj
}

// of is obj, which is of some version of k's resource, as an object of k.
func (k *Kind) of(obj *object) (*object, error) {
	given, _ := obj.fields["apiVersion"].(string)
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
func convert(obj *object, from, to *Kind) (*object, error) {
	if from == to {
		return obj, nil
	}
	if from.family == nil || from.family.convert == nil {
		out := &object{fields: loose(obj, to).Object, poison: obj.poison, defines: obj.defines}
		return to.pruned(out), nil
	}
	out, err := from.family.convert(obj, from, to)
	if err != nil {
		return nil, err
	}
	return to.pruned(out), nil
}

// pruned is a converted object without what k does not have.
func (k *Kind) pruned(obj *object) *object {
	if schema, custom := k.schema.(*customSchema); custom && !obj.poison {
		obj = obj.copy()
		_, _ = schema.prune(obj.fields)
	}
	return obj
}
