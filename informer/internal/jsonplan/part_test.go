// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"reflect"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func decoded[T any](t *testing.T, s subject, text string, opts Options) (*T, Sizes) {
	t.Helper()
	into := new(T)
	sizes, err := s.plan.Decode([]byte(text), into, opts)
	if err != nil {
		t.Fatal(err)
	}
	return into, sizes
}

func TestPlan_PartsAreSharedFromTheSecondSight_D2(t *testing.T) {
	s, text := subjectOf(t, reflect.TypeFor[corev1.Pod]()), examplePod(t)
	opts := Options{Table: s.table}
	first, alone := decoded[corev1.Pod](t, s, text, opts)
	second, _ := decoded[corev1.Pod](t, s, text, opts)
	third, shared := decoded[corev1.Pod](t, s, text, opts)
	if !reflect.DeepEqual(first, third) || !reflect.DeepEqual(second, third) {
		t.Fatal("the objects differ")
	}
	at := func(m map[string]string) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&m)) }
	switch {
	case &first.Spec.Containers[0] == &second.Spec.Containers[0]:
		t.Error("a part is shared at its first sight")
	case &second.Spec.Containers[0] != &third.Spec.Containers[0], at(second.Labels) != at(third.Labels),
		unsafe.StringData(second.Name) != unsafe.StringData(third.Name), second.Status.StartTime != third.Status.StartTime:
		t.Error("a part is not shared")
	case shared.Own*2 > alone.Own || shared.Shared*3 < alone.Own:
		t.Errorf("the first object takes %+v, and the third %+v; want that it takes less than half for itself", alone, shared)
	}
	fourth, _ := decoded[corev1.Pod](t, s, text, Options{Table: s.table, StringsOnly: true})
	if &fourth.Spec.Containers[0] == &third.Spec.Containers[0] || unsafe.StringData(fourth.Name) != unsafe.StringData(third.Name) {
		t.Error("with StringsOnly, more or less than strings is shared")
	}
}

func TestPlan_TreesAreSharedBelowTheirRoot_D2(t *testing.T) {
	s, text := subjectOf(t, treeType), examplePod(t)
	var last [2]map[string]any
	for i := range 3 {
		u, _ := decoded[unstructured.Unstructured](t, s, text, Options{Table: s.table})
		last[i%2] = u.Object
	}
	at := func(v any) uintptr { return reflect.ValueOf(v).Pointer() }
	if at(last[0]) == at(last[1]) || at(last[0]["spec"]) != at(last[1]["spec"]) {
		t.Error("want that the root is the object's own, and the spec shared")
	}
	delete(last[0], "spec")
	if last[1]["spec"] == nil {
		t.Error("the root is shared")
	}
}

// Goroutines that decode with one table share parts without a race condition,
// and parts stay what they were while garbage is collected.
func TestPlan_SharedPartsStayWhatTheyWere_D2(t *testing.T) {
	for _, s := range subjects(t)[1:] {
		for _, text := range []string{examplePod(t), exampleFleet} {
			want := reflect.New(s.plan.typ)
			if reference([]byte(text), want.Interface()) != nil {
				t.Fatal("the example is not valid")
			}
			var done sync.WaitGroup
			for range 4 {
				done.Go(func() {
					for range 50 {
						got := reflect.New(s.plan.typ)
						if _, err := s.plan.Decode([]byte(text), got.Interface(), Options{Table: s.table}); err != nil || !reflect.DeepEqual(got.Interface(), want.Interface()) {
							t.Errorf("decoded %s (%v), want %s", show(got), err, show(want))
							return
						}
					}
					runtime.GC()
				})
			}
			done.Wait()
		}
	}
}

// The sizes are those of the heap.
func TestPlan_SizesAreThoseOfTheHeap(t *testing.T) {
	for _, s := range subjects(t)[1:] {
		raw := []byte(examplePod(t))
		kept := make([]any, 2000)
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		var own int64
		for i := range kept {
			kept[i] = reflect.New(s.plan.typ).Interface()
			sizes, err := s.plan.Decode(raw, kept[i], Options{})
			if err != nil {
				t.Fatal(err)
			}
			own += int64(sizes.Own)
		}
		took := heap() - before
		runtime.KeepAlive(kept)
		if own < took*4/5 || own > took*6/5 {
			t.Errorf("%s: the objects take %d bytes, and their sizes say %d", s.plan.typ, took, own)
		}
	}
}
