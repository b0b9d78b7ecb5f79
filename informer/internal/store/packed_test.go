// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/kube"
)

// While a list of packed objects is stored, the values of their indexes do not
// hold what was opened to compute them.
func TestIndexer_ValuesDoNotHoldPackedObjects_D5(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	packer, err := compact.NewPacker(compact.Kind{
		Object: reflect.TypeFor[*corev1.ConfigMap](), Name: func() schema.GroupVersionKind { return kind },
	}, compact.Options{Codec: fixture.Codec{}, HotObjects: 1})
	if err != nil {
		t.Fatal(err)
	}
	const n, each = 64, 64 << 10
	objects := make([]kube.Object, n)
	for i := range objects {
		objects[i] = packer.Pack(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint(i), ResourceVersion: fmt.Sprint(i + 1)}}, nil, nil)
		if compact.Size(objects[i]) == 0 {
			t.Fatal("the object is not packed")
		}
	}
	var freed atomic.Int64
	x := NewIndexer(kind)
	if err := x.AddIndex("text", func(kube.Object) []string {
		text := make([]byte, each) // as an object's strings stand in one block
		runtime.AddCleanup(&text[0], func(struct{}) { freed.Add(1) }, struct{}{})
		return []string{unsafe.String(&text[0], 8)}
	}); err != nil {
		t.Fatal(err)
	}
	x.turn.Lock()
	defer x.turn.Unlock()
	values, err := x.evaluateLocked(n, func(i int) (kube.Key, kube.Object, bool) {
		return kube.KeyOf(objects[i]), objects[i], true
	})
	if err != nil || len(values) != n || len(values[n-1]) != 1 {
		t.Fatalf("got %d values, error %v; want one of each object", len(values), err)
	}
	for range 100 {
		if runtime.GC(); freed.Load() >= n-1 {
			break
		}
		runtime.Gosched()
	}
	if got := freed.Load(); got < n-1 {
		t.Errorf("%d of %d blocks are free; the values hold the others", got, n)
	}
	runtime.KeepAlive(values)
}

// writing is a Codec that calls write when an object is packed.
type writing struct {
	fixture.Codec
	write func()
}

func (w *writing) Compressor(dictionary []byte) (compact.Compressor, error) {
	c, err := w.Codec.Compressor(dictionary)
	return compressing{c, w}, err
}

type compressing struct {
	compact.Compressor
	of *writing
}

func (c compressing) Compress(dst, object []byte) []byte {
	c.of.write()
	return c.Compressor.Compress(dst, object)
}

// What changes, ends or moves while the rows are packed is not undone.
func TestSweep_ChangeMeanwhileStays_D5(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	state := func(name, value string, v kube.Version) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), ResourceVersion: v.String()}, Data: map[string]string{"v": value}}
	}
	x := NewIndexer(kind)
	x.Open(1)
	apply := func(typ DeltaType, obj *corev1.ConfigMap) {
		v := kube.ParseVersion(obj.ResourceVersion)
		if _, err := x.Apply(Batch{Deltas: []Delta{{Type: typ, Key: kube.KeyOf(obj), Scope: 1, Object: obj, UID: obj.UID, Version: v, Heap: 5000}}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		apply(Added, state(fmt.Sprint(i), "before", kube.Version(i+1)))
	}
	codec := &writing{write: func() {}}
	packer, err := compact.NewPacker(compact.Kind{Object: reflect.TypeFor[*corev1.ConfigMap](), Name: func() schema.GroupVersionKind { return kind }}, compact.Options{Codec: codec})
	if err != nil {
		t.Fatal(err)
	}
	codec.write = func() {
		codec.write = func() {}
		apply(Updated, state("0", "after", 20))
		apply(Deleted, state("1", "before", 21))
	}
	Sweep{Of: x, Packer: packer}.Run()
	for i := range 10 {
		obj, _, err := x.Get(kube.Key{Namespace: "a", Name: fmt.Sprint(i)})
		switch {
		case err != nil:
			t.Fatal(err)
		case i == 0 && (compact.IsPacked(obj) || obj.(*corev1.ConfigMap).Data["v"] != "after"):
			t.Errorf("the object that changed meanwhile is %v, want its new state", obj)
		case i == 1 && obj != nil:
			t.Errorf("the object that ended meanwhile is %v", obj)
		case i > 1 && !compact.IsPacked(obj):
			t.Errorf("object %d is not packed", i)
		}
	}
	if s := x.Snapshot(); s.Objects != 9 || s.Packed == 0 || s.Heap != s.Packed+5000 {
		t.Errorf("%d objects take %d bytes, %d of them packed; want 9, of which one takes 5000", s.Objects, s.Heap, s.Packed)
	}
}
