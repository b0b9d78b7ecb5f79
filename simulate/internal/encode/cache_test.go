// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// manyPods are stored Pods of a few templates.
func manyPods(t *testing.T, count int) (*kinds.Kind, []*object.Object) {
	t.Helper()
	kind := &kinds.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Namespaced: true, Builtin: true}
	kind = kind.Completed()
	log := revisions.NewLog()
	var items []*object.Object
	for i := range count {
		name, app := fmt.Sprintf("p%d", i), fmt.Sprintf("app-%d", i%3)
		env := map[string]any{"name": "ADDRESS", "value": strings.Repeat("<"+app+">", 30)}
		owned := map[string]any{"manager": "m", "operation": "Update", "time": fmt.Sprintf("2026-01-01T00:00:%02dZ", i%60),
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:containers": map[string]any{"f:" + strings.Repeat("x", 200): map[string]any{}}}}}
		obj := &object.Object{Fields: map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": name, "namespace": "default", "managedFields": []any{owned}},
			"spec": map[string]any{"nodeName": name, "containers": []any{
				map[string]any{"name": "main", "image": app, "env": []any{env}, "resources": map[string]any{}},
			}},
		}}
		items = append(items, log.Put(schema.GroupResource{Resource: "pods"}, types.NamespacedName{Namespace: "default", Name: name}, obj))
	}
	return kind, items
}

// TestEncoder_EqualPartsAreEncodedOnce_S31: what is copied from another object of the list
// equals what encoding would give, in each form, for lists that are cached and for those
// that are too long.
func TestEncoder_EqualPartsAreEncodedOnce_S31(t *testing.T) {
	kind, items := manyPods(t, 200)
	for _, protobuf := range []bool{false, true} {
		for _, atMost := range []int{0, 10_000} {
			cache := &Cache{AtMost: atMost}
			e := Encoder{kind: kind, Protobuf: protobuf, Cache: cache}
			for _, obj := range items {
				obj.Encoded.Store(nil)
			}
			for round := range 2 {
				got, err := e.List(metav1.ListMeta{}, items)
				if err != nil {
					t.Fatal(err)
				}
				plain := Encoder{kind: kind, Protobuf: protobuf} // without fragments
				want, err := plain.List(metav1.ListMeta{}, items)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("S31: protobuf %t, at most %d bytes, round %d:\ngot  %.600q\nwant %.600q", protobuf, atMost, round, got, want)
				}
			}
			if cache.mu.bytes > cache.bound() {
				t.Errorf("S31: protobuf %t: %d bytes are kept, want at most %d", protobuf, cache.mu.bytes, cache.bound())
			}
			kept := cache.fragments.Texts()
			if len(kept) == 0 {
				t.Fatalf("S31: protobuf %t: no part is kept", protobuf)
			}
			for _, text := range kept {
				copy(text, bytes.Repeat([]byte{'#'}, len(text)))
			}
			for _, obj := range items {
				obj.Encoded.Store(nil)
			}
			got, err := e.List(metav1.ListMeta{}, items)
			if err != nil {
				t.Fatal(err)
			}
			if copied := bytes.Count(got, []byte{'#'}); copied < len(items)*300 {
				t.Errorf("S31: protobuf %t: %d bytes of %d objects were copied: equal parts are encoded again", protobuf, copied, len(items))
			}
		}
	}
}

// TestEncoder_LongListsAreNotKept_S31: a list of more than half of the cache evicts
// nothing, and leaves no more than its first object.
func TestEncoder_LongListsAreNotKept_S31(t *testing.T) {
	kind, items := manyPods(t, 200)
	for _, protobuf := range []bool{false, true} {
		cache := &Cache{AtMost: 50_000}
		e := Encoder{kind: kind, Protobuf: protobuf, Cache: cache}
		hot := items[len(items)-1]
		if _, err := e.content(hot); err != nil {
			t.Fatal(err)
		}
		if _, err := e.List(metav1.ListMeta{}, items); err != nil {
			t.Fatal(err)
		}
		if n := cache.mu.held.Len(); n != 2 {
			t.Errorf("S31: protobuf %t: %d encodings are kept, want 2", protobuf, n)
		}
		if hot.Encoded.Load().In(kind, e.form()).Kept() == nil {
			t.Errorf("S31: protobuf %t: the list has pushed out what was kept", protobuf)
		}
		if _, err := e.List(metav1.ListMeta{RemainingItemCount: new(int64(len(items) - 50))}, items[1:51]); err != nil {
			t.Fatal(err)
		}
		if n := cache.mu.held.Len(); n != 3 {
			t.Errorf("S31: protobuf %t: %d encodings are kept after a page, want 3", protobuf, n)
		}
		for _, obj := range items {
			obj.Encoded.Store(nil)
		}
	}
}
