// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/kube"
)

// Patch is a change of an object. Using the zero Patch is an error.
type Patch struct {
	kind types.PatchType
	data func(obj kube.Object, kind schema.GroupVersionKind) ([]byte, error)
	from kube.Object // of MergeFrom
	sent kube.Object // that is sent as a merge patch

	elements bool // operations on elements of lists, made for one version
}

// MergePatch returns a JSON merge patch (RFC 7386): fields of change replace those of
// the object, null removes a field. change is marshalled to JSON; a []byte or
// json.RawMessage is sent as it is.
func MergePatch(change any) Patch { return given(types.MergePatchType, change) }

// StrategicMergePatch returns a patch that merges lists by their keys. The server
// supports it for built-in kinds, not for custom resources. change is as for
// MergePatch.
func StrategicMergePatch(change any) Patch { return given(types.StrategicMergePatchType, change) }

// JSONPatch returns a patch that is a list of operations (RFC 6902).
func JSONPatch(ops ...JSONOp) Patch {
	if ops == nil {
		ops = []JSONOp{}
	}
	return given(types.JSONPatchType, ops)
}

// MergeFrom returns the JSON merge patch that turns old into the object that is
// patched: copy the object that was read, change the copy, and patch it with MergeFrom
// the original. The patch is unconditional, unless it changes elements of a list of
// objects: it is then a JSON patch of these elements, to old's resourceVersion, so that
// they keep fields that the Go type does not know. If the two objects do not show which
// element became which, the error is an *UnknownFieldsError. If the change depends
// on what was read, as a change of any list does, add Preconditions{ResourceVersion:
// old.GetResourceVersion()}.
func MergeFrom(old kube.Object) Patch {
	return Patch{kind: types.MergePatchType, from: old, data: func(obj kube.Object, kind schema.GroupVersionKind) ([]byte, error) {
		if isNil(old) || reflect.TypeOf(old) != reflect.TypeOf(obj) {
			return nil, fmt.Errorf("make merge patch from %T to %T: the two must be of one type, and not nil", old, obj)
		}
		before, err := tree(old, kind)
		if err != nil {
			return nil, err
		}
		after, err := tree(obj, kind)
		if err != nil {
			return nil, err
		}
		return json.Marshal(jsontree.MergePatch(before, after))
	}}
}

func given(kind types.PatchType, change any) Patch {
	sent, _ := objectIn(change)
	return Patch{kind: kind, sent: sent, data: func(kube.Object, schema.GroupVersionKind) ([]byte, error) {
		if raw, ok := change.([]byte); ok {
			return raw, nil
		}
		return json.Marshal(change)
	}}
}

// objectIn returns the object that v points to, or is.
func objectIn(v any) (obj kube.Object, ok bool) {
	if obj, ok = v.(kube.Object); ok || v == nil {
		return obj, ok
	}
	if t := reflect.TypeOf(v); t.Kind() != reflect.Struct || !reflect.PointerTo(t).Implements(reflect.TypeFor[kube.Object]()) {
		return nil, false
	}
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	obj, ok = p.Interface().(kube.Object)
	return obj, ok
}

// tree returns obj as JSON values.
func tree(obj kube.Object, kind schema.GroupVersionKind) (map[string]any, error) {
	if !untyped(obj) {
		obj = shallow(obj)
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
	return jsontree.Of[map[string]any](obj)
}

// setByServer lists the fields of metadata that an applied object does not claim.
var setByServer = [...]string{
	"managedFields", "resourceVersion", "creationTimestamp", "uid", "generation",
	"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds",
}
