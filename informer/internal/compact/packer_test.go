// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

func newPacker(t testing.TB, kind compact.Kind, opts compact.Options) *compact.Packer {
	t.Helper()
	if opts.Codec == nil {
		opts.Codec = fixture.Codec{}
	}
	p, err := compact.NewPacker(kind, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ofType[T kube.Object](gvk schema.GroupVersionKind) compact.Kind {
	return compact.Kind{Object: reflect.TypeFor[T](), Name: func() schema.GroupVersionKind { return gvk }}
}

// decoding returns kind with a decoder of the informer, which drops
// managedFields.
func decoding(t testing.TB, kind compact.Kind) compact.Kind {
	t.Helper()
	d, err := restclient.NewDecoder(kind.Object, kind.Name(), false)
	if err != nil {
		t.Fatal(err)
	}
	kind.Decode = func(raw []byte) (kube.Object, error) {
		var item listwatch.Item[kube.Object]
		item.Raw = raw
		return d.Again(item)
	}
	kind.Whole, kind.ManagedFields = func() bool { return true }, func() bool { return false }
	return kind
}

func pod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-5d4f8c7b9-%05d", i), Namespace: "shop", UID: types.UID(fmt.Sprintf("0b1c5e42-3a1c-4a4b-8a4b-%012d", i)),
			ResourceVersion: fmt.Sprint(1000 + i), Labels: map[string]string{"app": "web", "shard": fmt.Sprint(i % 3)},
			CreationTimestamp: metav1.Unix(1_790_000_000+int64(i), 0), Finalizers: []string{"example.com/hold"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f8c7b9", UID: "u"}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:managed":{}}}`)}},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i), Containers: []corev1.Container{{
			Name: "main", Image: "registry.example.com/shop/web:v1.2.3", Env: []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "REGION", Value: "eu-central-1"}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.%d.%d", i/256, i%256)},
	}
}

// open opens e, which must be packed.
func open(t testing.TB, e kube.Object) kube.Object {
	t.Helper()
	if _, ok := e.(*compact.Entry); !ok {
		t.Fatalf("got a %T, want a packed object", e)
	}
	obj, err := compact.Open(e)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// crowd makes p forget what is hot.
func crowd(p *compact.Packer, n int) {
	for i := range n {
		p.Pack(pod(900_000+i), nil, nil)
	}
}

// What is opened is what was packed, from the bytes of a server in protobuf and
// in JSON, and from an object alone; with each dictionary.
func TestPacker_OpensWhatWasPacked_D5(t *testing.T) {
	plain, wire := ofType[*corev1.Pod](podKind), decoding(t, ofType[*corev1.Pod](podKind))
	tests := []struct {
		name string
		kind compact.Kind
		raw  func(*corev1.Pod) ([]byte, error)
	}{
		{"from protobuf", wire, func(p *corev1.Pod) ([]byte, error) { return p.Marshal() }},
		{"from JSON", wire, func(p *corev1.Pod) ([]byte, error) { return json.Marshal(p) }},
		{"alone, with the informer's decoder", wire, nil},
		{"alone", plain, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newPacker(t, test.kind, compact.Options{HotObjects: 1, DictionaryBytes: 2000})
			var entries []kube.Object
			var want []*corev1.Pod
			for i := range 120 {
				obj := pod(i)
				var raw []byte
				if test.raw != nil {
					var err error
					if raw, err = test.raw(obj); err != nil {
						t.Fatal(err)
					}
					obj.ManagedFields = nil // as decoded
				}
				if test.kind.Decode != nil {
					obj.ManagedFields = nil
					obj.SetGroupVersionKind(podKind)
				}
				want = append(want, obj.DeepCopy())
				entries = append(entries, p.Pack(obj, raw, nil))
			}
			runtime.GC()
			before := p.Stats().Decoded
			for i, e := range entries {
				if e.GetResourceVersion() != want[i].ResourceVersion || !reflect.DeepEqual(e.GetLabels(), want[i].Labels) {
					t.Fatalf("version %s, labels %v without opening, want %s and %v", e.GetResourceVersion(), e.GetLabels(), want[i].ResourceVersion, want[i].Labels)
				}
			}
			if p.Stats().Decoded != before {
				t.Error("labels and versions opened objects")
			}
			for i, e := range entries {
				if got := open(t, e); !reflect.DeepEqual(got, kube.Object(want[i])) {
					t.Fatalf("opened\n%v\nwant\n%v", got, want[i])
				}
			}
			if opened := p.Stats().Decoded - before; opened < 110 {
				t.Errorf("only %d of 120 objects were decoded: the test opens what was never packed", opened)
			}
			if first, last := compact.Size(entries[0]), compact.Size(entries[119]); last*3 > first*2 {
				t.Errorf("the last object takes %d bytes, the first %d: the dictionary does not help", last, first)
			}
		})
	}
}

// managedFields that the informer drops take no room.
func TestPacker_LeavesManagedFieldsOut(t *testing.T) {
	p := newPacker(t, decoding(t, ofType[*corev1.Pod](podKind)), compact.Options{})
	size := func(managed string) int64 {
		obj := pod(1)
		obj.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(managed)
		raw, err := obj.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		obj.ManagedFields = nil
		return compact.Size(p.Pack(obj, raw, nil))
	}
	var unlike strings.Builder
	for i := range 500 {
		fmt.Fprint(&unlike, i*i*7919)
	}
	if small, large := size("{}"), size(unlike.String()); small != large {
		t.Errorf("%d bytes with few managedFields, %d with many", small, large)
	}
}

// An object whose encoding is not all of it is held as it is.
type secretive struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Hidden            string `json:"-"`
}

func (s *secretive) DeepCopyObject() kruntime.Object { out := *s; return &out }

func TestPacker_HoldsWhatItCannotPack_D5(t *testing.T) {
	p := newPacker(t, ofType[*secretive](schema.GroupVersionKind{Version: "v1", Kind: "Secretive"}), compact.Options{})
	obj := &secretive{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Hidden: "x"}
	if got := p.Pack(obj, nil, nil); got != kube.Object(obj) {
		t.Errorf("got %T, want the object itself: its JSON lacks a field", got)
	}
	if got := p.Pack(pod(1), nil, nil); got.GetName() != pod(1).Name {
		t.Errorf("got %v, want the object of another type itself", got)
	}
	if got := p.Pack(nil, nil, nil); got != nil {
		t.Errorf("got %v, want nil", got)
	}
	u := newPacker(t, ofType[*unstructured.Unstructured](podKind), compact.Options{})
	whole := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}, "share": 1.0}}
	if got := u.Pack(whole, nil, nil); got != kube.Object(whole) {
		t.Error("1.0 becomes 1 in JSON, and is another number when decoded; want the object itself")
	}
	whole.Object["share"] = 1.5
	if got := open(t, u.Pack(whole, nil, nil)); !reflect.DeepEqual(got, kube.Object(whole)) {
		t.Errorf("got %v, want %v", got, whole)
	}
}

// A list that has an object unchanged does not pack it again.
func TestPacker_KnownBytesAreTheSameEntry_D5(t *testing.T) {
	p := newPacker(t, decoding(t, ofType[*corev1.Pod](podKind)), compact.Options{})
	pack := func(obj *corev1.Pod, known kube.Object) kube.Object {
		raw, err := obj.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return p.Pack(obj, raw, known)
	}
	first := pack(pod(1), nil)
	if pack(pod(1), first) != first {
		t.Error("the same bytes became another entry")
	}
	changed := pod(1)
	changed.Spec.NodeName = "elsewhere" // as after a change of the schema
	if e := pack(changed, first); e == first || open(t, e).(*corev1.Pod).Spec.NodeName != "elsewhere" {
		t.Error("other bytes of the same version are the known entry")
	}
}

// An object that a reader holds is not decoded a second time; memory of others
// returns.
func TestPacker_HeldObjectsAreNotDecodedAgain_D3(t *testing.T) {
	p := newPacker(t, ofType[*corev1.Pod](podKind), compact.Options{HotObjects: 4})
	e := p.Pack(pod(1), nil, nil)
	held := open(t, e)
	crowd(p, 100)
	runtime.GC()
	crowd(p, 100)
	if got := open(t, e); got != held {
		t.Error("the object was decoded again, although a reader holds it")
	}
	if !compact.Is(e, held) || compact.Is(e, pod(1)) {
		t.Error("Is does not tell the held object from an equal one")
	}
	freed := make(chan struct{})
	runtime.AddCleanup(held.(*corev1.Pod), func(done chan struct{}) { close(done) }, freed)
	held = nil
	crowd(p, 100)
	for range 10 {
		runtime.GC()
		select {
		case <-freed:
			if got := open(t, e); got.GetName() != pod(1).Name {
				t.Errorf("got %v, want the object again", got)
			}
			return
		case <-time.After(time.Second):
		}
	}
	t.Error("the object stays in memory, although no reader holds it")
}

// What was packed is let go of with its entry, and so are old dictionaries.
func TestPacker_GivesMemoryBack_D3(t *testing.T) {
	p := newPacker(t, ofType[*corev1.Pod](podKind), compact.Options{HotObjects: 10, DictionaryBytes: 10_000})
	entries := make(map[int]kube.Object)
	churn := func(n int) {
		for i := range n {
			entries[i%200] = p.Pack(pod(i), nil, nil)
			open(t, entries[i%200])
		}
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	churn(500)
	before := heap()
	churn(5000)
	crowd(p, 1000) // sweeps
	if grown := heap() - before; grown > 400<<10 {
		t.Errorf("the heap grew by %d bytes with ten times the churn", grown)
	}
	runtime.KeepAlive(entries)
}

func TestPacker_BoundsWhatIsHot_D3(t *testing.T) {
	p := newPacker(t, ofType[*corev1.Pod](podKind), compact.Options{HotObjects: 7})
	crowd(p, 100)
	if s := p.Stats(); s.Hot != 7 {
		t.Errorf("%d objects are hot, want 7", s.Hot)
	}
	p = newPacker(t, ofType[*corev1.Pod](podKind), compact.Options{HotBytes: 2000})
	crowd(p, 100)
	if s := p.Stats(); s.HotBytes > 2000 || s.Hot < 2 {
		t.Errorf("%d objects with %d bytes are hot, want at most 2000 bytes", s.Hot, s.HotBytes)
	}
}

// The clock keeps what is used.
func TestPacker_UsedObjectsStayHot(t *testing.T) {
	p := newPacker(t, ofType[*corev1.Pod](podKind), compact.Options{HotObjects: 10})
	e := p.Pack(pod(1), nil, nil)
	for range 50 {
		open(t, e)
		crowd(p, 3)
	}
	if n := p.Stats().Decoded; n != 0 {
		t.Errorf("an object that is read all the time was decoded %d times", n)
	}
}

// Damaged bytes are an error of their object, whatever is wrong with them.
func TestPacker_CorruptBytesAreAnError_D5(t *testing.T) {
	for _, damage := range []func([]byte) ([]byte, error){
		func([]byte) ([]byte, error) { return nil, fmt.Errorf("bad checksum") },
		func(b []byte) ([]byte, error) { return b[:len(b)/2], nil },
		func(b []byte) ([]byte, error) { b[1] ^= 0xff; return b, nil },
		func([]byte) ([]byte, error) { return nil, nil },
		func([]byte) ([]byte, error) { return nil, errPanicking },
	} {
		p := newPacker(t, ofType[*corev1.Pod](podKind), compact.Options{Codec: damaged{damage}, HotObjects: 1})
		e := p.Pack(pod(1), nil, nil)
		crowd(p, 3)
		obj, err := compact.Open(e)
		if err == nil && reflect.DeepEqual(obj, kube.Object(pod(1))) {
			t.Error("the damage did not reach the object")
		}
		if err != nil && (e.GetName() != "" || len(e.GetFinalizers()) > 0) {
			t.Error("an object that cannot be opened has a name")
		}
		if err != nil && compact.Alike(e, e) {
			t.Error("an object that cannot be opened equals another")
		}
	}
}

var errPanicking = fmt.Errorf("panic")

type damaged struct {
	damage func([]byte) ([]byte, error)
}

func (d damaged) Compressor(dictionary []byte) (compact.Compressor, error) {
	return fixture.Codec{}.Compressor(dictionary)
}

func (d damaged) Expander(dictionary []byte) (compact.Expander, error) {
	e, err := fixture.Codec{}.Expander(dictionary)
	return damagedExpander{d, e}, err
}

type damagedExpander struct {
	damaged
	compact.Expander
}

func (d damagedExpander) Expand(dst, packed []byte) ([]byte, error) {
	b, err := d.Expander.Expand(dst, packed)
	if err != nil {
		return nil, err
	}
	if b, err = d.damage(b); err == errPanicking {
		panic("the codec panics")
	}
	return b, err
}

// Selectors see the labels of a packed object as those of the object.
func TestLabelsOf_AreThoseOfTheObject_D5(t *testing.T) {
	p := newPacker(t, ofType[*corev1.Pod](podKind), compact.Options{})
	for _, set := range []map[string]string{nil, {"a": ""}, {"a": "1", "b": "2"}, {strings.Repeat("k", 200): strings.Repeat("v", 300)}} {
		obj := pod(1)
		obj.Labels = set
		for range 3 { // the third is shared
			e := p.Pack(obj.DeepCopy(), nil, nil)
			for _, text := range []string{"a", "!a", "a=1", "a!=1", "a in (1,2),b", "zz", strings.Repeat("k", 200)} {
				s, err := labels.Parse(text)
				if err != nil && len(text) < 100 {
					t.Fatal(err)
				} else if err != nil {
					continue
				}
				if got, want := s.Matches(compact.LabelsOf(e)), s.Matches(compact.LabelsOf(obj)); got != want {
					t.Errorf("%q of %v: %v when packed, %v before", text, set, got, want)
				}
			}
			for key, value := range set {
				if got, ok := compact.LabelsOf(e).Lookup(key); !ok || got != value || compact.LabelsOf(e).Get(key) != value || !compact.LabelsOf(e).Has(key) {
					t.Errorf("%q is %q, %v, want %q", key, got, ok, value)
				}
			}
		}
	}
}

func TestEntry_VersionIsThatOfTheObject_D5(t *testing.T) {
	p := newPacker(t, ofType[*corev1.Pod](podKind), compact.Options{})
	for _, version := range []string{"", "7", "007", "18446744073709551615", "18446744073709551616", "a"} {
		obj := pod(1)
		obj.ResourceVersion = version
		if got := p.Pack(obj, nil, nil).GetResourceVersion(); got != version {
			t.Errorf("the version of a packed object is %q, want %q", got, version)
		}
	}
}

// Readers, writers and evictions at the same time, for the race detector.
func TestPacker_ConcurrentUse_D5(t *testing.T) {
	var shown, hidden sync.Map
	kind := ofType[*corev1.Pod](podKind)
	kind.Shown = func(obj kube.Object) { shown.Store(obj, true) }
	kind.Hidden = func(obj kube.Object) { hidden.Store(obj, true) }
	p := newPacker(t, kind, compact.Options{HotObjects: 8, DictionaryBytes: 5000})
	entries := make([]kube.Object, 40)
	for i := range entries {
		entries[i] = p.Pack(pod(i), nil, nil)
	}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 500 {
				e := entries[(i*7+g*3)%len(entries)]
				obj, err := compact.Open(e)
				if err != nil || obj.GetName() != pod((i*7+g*3)%len(entries)).Name {
					t.Errorf("got %v, %v", obj, err)
					return
				}
				if i%50 == 0 {
					e.(*compact.Entry).Forget(obj)
					p.Pack(pod(1000+i), nil, nil)
				}
			}
		})
	}
	all.Wait()
}
