// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// metaVersion returns the version of the group of tables and partial metadata.
func (e Encoder) metaVersion() string { return metav1.GroupName + "/" + e.version }

// partial returns the metadata of obj alone. The kind of the answer is
// PartialObjectMetadata, not the kind of the object.
func (e Encoder) partial(obj *object.Object) (*metav1.PartialObjectMetadata, error) {
	out := &metav1.PartialObjectMetadata{}
	fields := map[string]any{"metadata": obj.Fields["metadata"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, out); err != nil {
		return nil, err
	}
	out.APIVersion, out.Kind = e.metaVersion(), asMetadata
	return out, nil
}

// internalType returns the name that a real server has for the Go type of k's objects.
func internalType(k *kinds.Kind) string {
	if !k.Builtin {
		return "*unstructured.Unstructured"
	}
	return "*" + kinds.GoInternalType(k.GroupVersionKind)
}

// metadata encodes the metadata of obj alone.
func (e Encoder) metadata(obj *object.Object) ([]byte, error) {
	out, err := e.partial(obj)
	if err != nil {
		return nil, err
	}
	if e.Protobuf {
		return out.Marshal()
	}
	return json.Marshal(out)
}
