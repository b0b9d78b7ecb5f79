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

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// appliedPod is an applied Pod whose fields depend on bits.
func appliedPod(bits, value byte) map[string]any {
	text := func(bit byte) string { return fmt.Sprint("v", value>>bit&1) }
	metadata := map[string]any{"namespace": "n", "name": "a"}
	spec := map[string]any{}
	var containers []any
	for n := range int(bits & 3) {
		if bits&4 != 0 {
			n = 2 - n // in another order
		}
		c := map[string]any{"name": fmt.Sprint("c", n), "image": text(byte(n))}
		if bits&8 != 0 {
			c["ports"] = []any{map[string]any{"containerPort": int64(80 + n*int(value&1))}, map[string]any{"containerPort": int64(80), "protocol": "UDP", "name": text(1)}}
			c["env"] = []any{map[string]any{"name": "A", "value": text(2)}, map[string]any{"name": text(0), "value": "x"}}
		}
		if bits&16 != 0 {
			c["args"] = []any{"a", text(3)}
			c["resources"] = map[string]any{"limits": map[string]any{"cpu": text(1)[1:]}}
		}
		containers = append(containers, c)
	}
	if containers != nil {
		spec["containers"] = containers
	}
	if bits&32 != 0 {
		metadata["labels"] = map[string]any{"a": text(0), text(1): "x"}
		metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "X", "name": text(0), "uid": text(1)}}
		spec["nodeSelector"] = map[string]any{"a": text(2)}
	}
	if bits&64 != 0 {
		metadata["finalizers"] = []any{"x/" + text(0), "x/c"}
		spec["tolerations"] = []any{map[string]any{"key": text(3)}, map[string]any{"key": "b"}}
	}
	if bits&128 != 0 {
		spec["hostNetwork"], spec["priority"], spec["odd"] = value&1 != 0, int64(value&2), nil
		if value&4 == 0 {
			delete(spec, "odd")
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
}

// mergedAnew returns the result of an apply without any memory.
func mergedAnew(q Writer, given map[string]any, old *object.Object) (*object.Object, error) {
	obj, err := q.askMerge(given, old)
	if err != nil {
		return nil, err
	}
	if !unapplied(old, obj) {
		q.Kind.Schema.SetDefaults(obj.Fields)
	}
	if old != nil {
		keepTimes(old, obj)
	}
	return obj, nil
}

// An apply of a known shape has the result of the field manager.
func FuzzRecipes_S9(f *testing.F) {
	f.Add([]byte{0, 3, 0, 1, 3, 1, 0, 3, 1, 1, 11, 2, 2, 11, 3, 0, 27, 0, 0, 59, 1, 1, 123, 2, 2, 255, 3, 0, 3, 1})
	f.Add([]byte{0, 255, 0, 0, 255, 15, 1, 255, 0, 2, 255, 15, 3, 9, 1, 0, 255, 3, 0, 0, 0, 1, 0, 0, 0, 255, 0, 0, 255, 0})
	f.Add([]byte{0, 15, 0, 5, 15, 0, 0, 11, 9, 8, 15, 1, 0, 15, 2, 9, 15, 3, 16, 15, 0, 0, 15, 1, 1, 7, 1, 2, 7, 2})
	f.Add([]byte{0, 3, 0, 0, 3, 0, 0, 7, 0, 0, 7, 0})
	f.Add([]byte{3, 9, 0, 0, 3, 1, 1, 7, 2, 2, 7, 3, 3, 41, 1, 0, 35, 1, 4, 9, 2, 0, 3, 1, 4, 41, 0, 0, 67, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 90 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			kind := kinds.NewRegistry().Kind(corev1.SchemeGroupVersion.WithKind("Pod"))
			var old *object.Object
			for n := 0; n+2 < len(program); n += 3 {
				how, bits, value := program[n], program[n+1], program[n+2]
				q := Writer{Kind: kind, Manager: []string{"one", "two"}[how&1], Force: how&2 != 0}
				var want, got *object.Object
				var wrong, err error
				if how&4 != 0 && old != nil { // another manager has edited it
					want, got = old.Copy(), old.Copy()
					for _, obj := range []*object.Object{want, got} {
						obj.Fields["spec"].(map[string]any)["priority"] = int64(value)
						jsontree.SetIn(obj.Fields, map[string]any{"phase": fmt.Sprint(value & 1), "conditions": []any{map[string]any{"type": fmt.Sprint(value & 3)}}}, "status")
					}
					wrong = q.askManager(old, want)
					keepTimes(old, want)
					err = q.Own(old, got)
				} else {
					want, wrong = mergedAnew(q, appliedPod(bits, value), old)
					got, err = q.Applied(appliedPod(bits, value), old)
				}
				if fmt.Sprint(err) != fmt.Sprint(wrong) {
					t.Fatalf("write %d of %v:\ngot  %v\nwant %v", n/3, program, err, wrong)
				}
				if err != nil {
					continue
				}
				if !reflect.DeepEqual(got.Fields, want.Fields) {
					t.Fatalf("write %d of %v:\ngot  %v\nwant %v", n/3, program, got.Fields, want.Fields)
				}
				old = got
				time.Sleep(time.Duration(how>>3) * 100 * time.Millisecond)
			}
		})
	})
}

// Applies of one shape are answered from memory, each with an object of its own.
func TestServer_AlikeAppliesAreRemembered_S9(t *testing.T) {
	kind := kinds.NewRegistry().Kind(corev1.SchemeGroupVersion.WithKind("Pod"))
	q := Writer{Kind: kind, Manager: "one"}
	for value := range byte(2) {
		first, err := q.Applied(appliedPod(127, value<<3), nil)
		if err != nil {
			t.Fatal(err)
		}
		given := appliedPod(127, 8-value<<3)
		if of, ok := q.shapeOfApply(first, given); !ok || value > 0 && kind.Managers.Said.Recall(of) == nil {
			t.Error("an apply of other values is not like the first")
		}
		second, err := q.Applied(given, first)
		if err != nil {
			t.Fatal(err)
		}
		second.Fields["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["image"] = "changed"
		if third, err := q.Applied(given, first); err != nil || reflect.DeepEqual(third.Fields, second.Fields) {
			t.Errorf("an object of an apply shares parts with another: %v", err)
		}
	}
}
