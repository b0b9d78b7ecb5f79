// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const metadataKind = "PartialObjectMetadata"

// wantsAlone reads the parameters of one form in an Accept header. alone: only
// the metadata of objects is wanted; known is false for a form, such as a
// Table, that the server does not have.
func wantsAlone(params string) (alone, known bool) {
	for param := range strings.SplitSeq(params, ";") {
		if as, ok := strings.CutPrefix(strings.TrimSpace(param), "as="); ok {
			alone = as == metadataKind || as == metadataKind+"List"
			return alone, alone
		}
	}
	return false, true
}

// partial is the metadata of obj alone. Who asked for it is told that it is no
// more than that, and not of which kind.
func partial(obj *object) (*metav1.PartialObjectMetadata, error) {
	out := &metav1.PartialObjectMetadata{}
	fields := map[string]any{"metadata": obj.fields["metadata"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, out); err != nil {
		return nil, err
	}
	out.APIVersion, out.Kind = metav1.SchemeGroupVersion.String(), metadataKind
	return out, nil
}

func (e encoder) metadata(obj *object) ([]byte, error) {
	out, err := partial(obj)
	if err != nil {
		return nil, err
	}
	return e.meta(out, metadataKind)
}

func (e encoder) metadataList(meta metav1.ListMeta, items []*object) ([]byte, error) {
	out := &metav1.PartialObjectMetadataList{ListMeta: meta, Items: []metav1.PartialObjectMetadata{}}
	out.APIVersion, out.Kind = metav1.SchemeGroupVersion.String(), metadataKind+"List"
	for _, obj := range items {
		item, err := partial(obj)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, *item)
	}
	return e.meta(out, metadataKind+"List")
}

// meta is a message of the group meta.k8s.io.
func (e encoder) meta(message interface{ Marshal() ([]byte, error) }, kind string) ([]byte, error) {
	if !e.protobuf {
		return json.Marshal(message)
	}
	raw, err := message.Marshal()
	if err != nil {
		return nil, err
	}
	return envelope(metav1.SchemeGroupVersion.String(), kind, raw)
}
