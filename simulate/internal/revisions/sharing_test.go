// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

func TestSharing_EqualPartsAreOnePieceOfMemory_S29(t *testing.T) {
	log := NewLog()
	r := schema.GroupResource{Resource: "pods"}
	stored := func(name, image string) map[string]any {
		var fields map[string]any
		text := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":%q,"probe":{"port":1}}],"x":[],"y":{},"z":null}}`, name, image)
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			t.Fatal(err)
		}
		want := (&object.Object{Fields: fields}).Copy().Fields
		obj := log.Put(r, types.NamespacedName{Name: name}, &object.Object{Fields: fields})
		if !reflect.DeepEqual(obj.Fields["spec"], want["spec"]) || !reflect.DeepEqual(object.MetadataOf(obj)["labels"], object.MetadataOf(&object.Object{Fields: want})["labels"]) {
			t.Errorf("S29: %v was stored as %v", want, obj.Fields)
		}
		return obj.Fields
	}
	a, b, c := stored("a", "one"), stored("b", "one"), stored("c", "two")
	if !identical(a["spec"], b["spec"]) {
		t.Error("S29: equal specs take memory twice")
	}
	if identical(a["spec"], c["spec"]) {
		t.Error("S29: specs that differ are one")
	}
	probe := func(fields map[string]any) any {
		return fields["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["probe"]
	}
	if !identical(probe(a), probe(c)) {
		t.Error("S29: equal parts of specs that differ take memory twice")
	}
}

func TestSharing_WhatIsNotMetIsForgotten_S29(t *testing.T) {
	s := newSharing()
	for i := range 3 * sharedAtMost {
		s.value(map[string]any{"n": int64(i)})
	}
	if n := len(s.young) + len(s.old); n > 2*sharedAtMost {
		t.Errorf("S29: %d parts are remembered, want at most %d", n, 2*sharedAtMost)
	}
}
