// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/internal/applied"
	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/kube"
)

// held returns the cached object that a write of obj would change, shared, if it can be compared;
// else nil. It starts no informer.
func (o *omitter) held(kind schema.GroupVersionKind, obj client.Object) kube.Object {
	i := id{kind, formOf(obj)}
	s := o.cache.find(i)
	if s == nil || o.cache.shared { // whose transforms are not known
		return nil
	}
	e, err := s.open()
	if err != nil || e.transforms() {
		return nil
	}
	held := o.cache.factory.Cached(kind, kube.KeyOf(obj), obj)
	switch {
	case held == nil, held.GetDeletionTimestamp() != nil, held.GetResourceVersion() == "":
		return nil
	case obj.GetUID() != "" && obj.GetUID() != held.GetUID():
		return nil
	case obj.GetResourceVersion() != "" && obj.GetResourceVersion() != held.GetResourceVersion():
		return nil // so that the conflict is seen
	}
	return held
}

// updated reports whether an update would change nothing, and counts it then.
func (o *omitter) updated(obj client.Object, sub string) bool {
	kind, err := o.GroupVersionKindFor(obj)
	if err != nil || obj.GetResourceVersion() == "" || formOf(obj) == metadataForm {
		return false
	}
	held := o.held(kind, obj)
	if held == nil {
		return false
	}
	if managed := obj.GetManagedFields(); len(managed) > 0 && !equality.Semantic.DeepEqual(managed, held.GetManagedFields()) {
		return false
	}
	is, ok1 := applied.StateOf(held, applied.Whole)
	wanted, ok2 := applied.StateOf(obj, applied.Whole)
	if !ok1 || !ok2 || is != wanted {
		return false
	}
	if sub == statusName && formOf(obj) == typed {
		tree, err := jsontree.Of[map[string]any](held)
		if err != nil || jsontree.IsZero(tree[statusName]) {
			return false // zeros that the server may not have
		}
	}
	o.count(kind, "update")
	return true
}

// patched returns the cached object if a patch would change nothing, which it counts; else nil.
func (o *omitter) patched(obj client.Object, how types.PatchType, data []byte) kube.Object {
	kind, err := o.GroupVersionKindFor(obj)
	if err != nil {
		return nil
	}
	held := o.held(kind, obj)
	if held == nil || !changesNothing(held, kind, how, data) {
		return nil
	}
	o.count(kind, "patch")
	return held
}

func changesNothing(held kube.Object, kind schema.GroupVersionKind, how types.PatchType, data []byte) bool {
	if how == types.JSONPatchType {
		var operations []json.RawMessage
		return json.Unmarshal(data, &operations) == nil && operations != nil && len(operations) == 0
	}
	patch, err := jsontree.Of[map[string]any](json.RawMessage(data))
	if err != nil || patch == nil {
		return false
	}
	_, exact := held.(*unstructured.Unstructured)
	before, err := treeOf(held, kind)
	if err != nil || unsure("", patch, exact) {
		return false
	}
	switch how {
	case types.MergePatchType:
		return jsontree.Equal(jsontree.Merge(before, patch), before)
	case types.StrategicMergePatchType:
		return !exact && clientscheme.Scheme.Recognizes(kind) && mergesToItself(before, kind, patch)
	}
	return false
}

// mergesToItself reports whether a strategic merge patch leaves an object of kind as it is.
func mergesToItself(before map[string]any, kind schema.GroupVersionKind, patch map[string]any) bool {
	like, err := clientscheme.Scheme.New(kind)
	if err != nil {
		return false
	}
	after, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(before), runtime.DeepCopyJSON(patch), like)
	return err == nil && jsontree.Equal(map[string]any(after), before)
}

func treeOf(held kube.Object, kind schema.GroupVersionKind) (map[string]any, error) {
	tree, err := jsontree.Of[map[string]any](held)
	if err == nil {
		tree["apiVersion"], tree["kind"] = kind.ToAPIVersionAndKind()
	}
	return tree, err
}

// unsure reports whether the fields of a patch may change something that the cached object does
// not show: managedFields, and, unless it is exact, what its Go type does not know or
// shows as zero. Labels and annotations are always known.
func unsure(path string, fields map[string]any, exact bool) bool {
	for name, value := range fields {
		at := path + "." + name
		switch {
		case at == ".metadata.managedFields":
			return true
		case at == ".metadata.labels", at == ".metadata.annotations":
			if value == nil && !exact {
				return true
			}
		case strings.HasPrefix(name, "$") && !strings.HasPrefix(name, "$setElementOrder/"):
			return true
		case unsureValue(at, value, exact):
			return true
		}
	}
	return false
}

func unsureValue(path string, value any, exact bool) bool {
	switch value := value.(type) {
	case map[string]any:
		return !exact && len(value) == 0 || unsure(path, value, exact)
	case []any:
		for _, element := range value {
			if unsureValue(path+"[]", element, exact) {
				return true
			}
		}
		return !exact && len(value) == 0
	}
	return !exact && jsontree.IsZero(value)
}
