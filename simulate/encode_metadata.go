// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// metaVersion is that of the group whose kinds show objects in part.
func (e encoder) metaVersion() string { return metav1.GroupName + "/" + e.version }

// partial is the metadata of obj alone. Who asked for it is told that it is no
// more than that, and not of which kind.
func (e encoder) partial(obj *object.Object) (*metav1.PartialObjectMetadata, error) {
	out := &metav1.PartialObjectMetadata{}
	fields := map[string]any{"metadata": obj.Fields["metadata"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, out); err != nil {
		return nil, err
	}
	out.APIVersion, out.Kind = e.metaVersion(), asMetadata
	return out, nil
}

// internalType is what a real server calls the Go type of k's objects.
func (k *Kind) internalType() string {
	if !k.builtin {
		return "*unstructured.Unstructured"
	}
	return "*" + goInternalType(k.GroupVersionKind)
}

// metadata is the content of the metadata of obj alone.
func (e encoder) metadata(obj *object.Object) ([]byte, error) {
	out, err := e.partial(obj)
	if err != nil {
		return nil, err
	}
	if e.protobuf {
		return out.Marshal()
	}
	return json.Marshal(out)
}
