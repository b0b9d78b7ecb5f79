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
