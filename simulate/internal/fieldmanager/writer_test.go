// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// podWith is a Pod whose fields depend on bits.
func podWith(bits, value byte) *object.Object {
	metadata := map[string]any{"namespace": "n", "name": "a"}
	spec := map[string]any{"nodeName": fmt.Sprint("node", value&1)}
	obj := &object.Object{Fields: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}}
	if bits&1 != 0 {
		metadata["labels"] = map[string]any{"a": fmt.Sprint(value & 1), "b": "x"}
	}
	if bits&2 != 0 {
		metadata["labels"] = map[string]any{"a": fmt.Sprint(value & 2)}
	}
	if bits&4 != 0 {
		spec["hostNetwork"], spec["priority"] = value&1 != 0, int64(value&2)
	}
	var containers []any
	for n := range int(bits >> 3 & 3) {
		containers = append(containers, map[string]any{"name": fmt.Sprint("c", n), "image": fmt.Sprint("i", value&1)})
	}
	if bits&32 != 0 {
		containers = append(containers, map[string]any{"name": "last", "image": "i", "args": []any{fmt.Sprint(value & 2)}})
	}
	if containers != nil {
		spec["containers"] = containers
	}
	if bits&64 != 0 {
		metadata["finalizers"] = []any{fmt.Sprint("x/", value&1)}
	}
	return obj
}

// What is remembered of a field manager equals its answer.
func FuzzOwnerships_S9(f *testing.F) {
	f.Add([]byte{9, 0, 9, 1, 9, 0, 9, 1, 137, 1, 9, 0, 105, 2, 41, 3, 9, 0, 8, 1, 136, 1, 8, 0, 200, 1, 9, 1})
	f.Add([]byte{1, 0, 129, 1, 1, 8, 1, 0, 129, 0})
	f.Add([]byte{1, 0, 2, 1, 1, 2, 129, 3, 130, 1, 1, 0, 2, 3, 1, 2, 129, 1, 130, 3, 1, 0, 2, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 60 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			s := kinds.NewRegistry()
			kind := s.Kind(corev1.SchemeGroupVersion.WithKind("Pod"))
			var old *object.Object
			for n := 0; n+1 < len(program); n += 2 {
				q := Writer{Kind: kind, Manager: []string{"", "other"}[program[n]>>7]}
				asked, recalled := podWith(program[n], program[n+1]), podWith(program[n], program[n+1])
				if program[n+1]&4 != 0 && old != nil { // as read by a client before
					object.MetadataOf(asked)["managedFields"] = old.Copy().Fields["metadata"].(map[string]any)["managedFields"]
					object.MetadataOf(recalled)["managedFields"] = old.Copy().Fields["metadata"].(map[string]any)["managedFields"]
				}
				if err := q.askManager(old, asked); err != nil {
					t.Fatal(err)
				}
				if old != nil {
					keepTimes(old, asked)
				}
				if err := q.Own(old, recalled); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(asked.Fields, recalled.Fields) {
					t.Fatalf("write %d of %v:\ngot  %v\nwant %v", n/2, program, recalled.Fields, asked.Fields)
				}
				if old = recalled; program[n+1]&8 != 0 {
					old = nil // another object
				}
				time.Sleep(time.Duration(program[n+1]>>4) * 100 * time.Millisecond)
			}
		})
	})
}

// A write of a known shape is answered from memory.
func TestOwnerships_AlikeWritesAreRemembered_S9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := kinds.NewRegistry().Kind(corev1.SchemeGroupVersion.WithKind("Pod"))
		for _, manager := range []string{"one", ""} {
			testAlikeWrites(t, kind, Writer{Kind: kind, Manager: manager})
		}
	})
}

func testAlikeWrites(t *testing.T, kind *kinds.Kind, q Writer) {
	t.Helper()
	first, second := podWith(5, 0), podWith(5, 1)
	if err := q.Own(nil, first); err != nil {
		t.Fatal(err)
	}
	shape, ok := q.shapeOf(nil, second)
	if !ok || kind.Managers.Said.Recall(shape) == nil {
		t.Fatal("a Pod with other values is not like the first")
	}
	unlike := podWith(1, 1)
	if other, ok := q.shapeOf(nil, unlike); ok && other == shape {
		t.Error("a Pod without a priority passes for one that has it")
	}
}
