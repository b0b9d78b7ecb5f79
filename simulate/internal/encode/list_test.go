// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"bytes"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/wire"
)

// TestEncoder_ListsAreSentInParts_S29: a list is never held in one buffer, and its parts
// make up the list.
func TestEncoder_ListsAreSentInParts_S29(t *testing.T) {
	const count, size = 300, 10 << 10
	kind := &kinds.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps"}
	kind = kind.Completed()
	var items []*object.Object
	for range count {
		items = append(items, &object.Object{Fields: map[string]any{
			"metadata": map[string]any{"name": "a"}, "data": map[string]any{"text": string(bytes.Repeat([]byte("x"), size))},
		}})
	}
	for _, protobuf := range []bool{false, true} {
		e := Encoder{kind: kind, Protobuf: protobuf, Cache: &Cache{}}
		meta := metav1.ListMeta{ResourceVersion: "7"}
		var parts int
		var body []byte
		err := e.EachPart(meta, items, func(part []byte) error {
			if len(part) > AnswerAtOnce+2*size {
				t.Fatalf("S29: protobuf %t: a part has %d bytes", protobuf, len(part))
			}
			parts++
			body = append(body, part...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := count * size / (AnswerAtOnce + 2*size); parts < want {
			t.Errorf("S29: protobuf %t: %d parts, want at least %d", protobuf, parts, want)
		}
		if !protobuf {
			continue
		}
		head, _ := meta.Marshal()
		raw := wire.AppendField(nil, 1, head)
		for _, obj := range items {
			content, err := e.content(obj)
			if err != nil {
				t.Fatal(err)
			}
			raw = wire.AppendField(raw, 2, content)
		}
		want, _ := wire.Envelope("v1", "ConfigMapList", raw)
		if !bytes.Equal(body, want) {
			t.Errorf("S29: the parts are %d bytes and not the list of %d", len(body), len(want))
		}
	}
}
