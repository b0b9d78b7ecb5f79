// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package protoplan

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/informer/internal/share"
)

// message is implemented by the generated types.
type protobuf interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// kinds returns all types of the scheme that have protobuf, in one order.
func kinds() []reflect.Type {
	var out []reflect.Type
	for _, t := range scheme.Scheme.AllKnownTypes() {
		if _, is := reflect.New(t).Interface().(protobuf); is && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b reflect.Type) int { return strings.Compare(a.PkgPath()+a.Name(), b.PkgPath()+b.Name()) })
	return out
}

// filler sets fields to random values that Marshal can write and Unmarshal reads.
type filler struct {
	*rand.Rand
	full bool // no field is left empty
}

func (r filler) fill(v reflect.Value, depth int) {
	if !v.CanSet() {
		return
	}
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		*p = metav1.Time{Time: time.Unix(r.Int64N(1<<33)-1<<30, 0).Local()}
		return
	case *metav1.MicroTime:
		*p = metav1.MicroTime{Time: time.Unix(r.Int64N(1<<33)-1<<30, r.Int64N(1e6)*1000).Local()}
		return
	case *resource.Quantity:
		*p = resource.MustParse([]string{"0", "1", "250m", "1Gi", "1500Mi", "1e3", "0.1", "12345678901234567890"}[r.IntN(8)])
		return
	case *intstr.IntOrString:
		*p = []intstr.IntOrString{intstr.FromInt32(r.Int32()), intstr.FromString("50%")}[r.IntN(2)]
		return
	case *metav1.FieldsV1:
		*p = *metav1.NewFieldsV1(`{"f:spec":{}}`)
		return
	}
	if v.Kind() != reflect.Struct && !r.full && r.IntN(4) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("protobuf") != "" {
				r.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if depth > 12 {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		r.fill(v.Elem(), depth+1)
	case reflect.Slice:
		n := r.IntN(4)
		if depth > 12 {
			n = 0
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			r.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(12) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			r.fill(key, depth+1)
			r.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString([]string{"", "a", "web", "nginx", "kube-api-access-x7k2p", "node-17.example", "\xff\xfe", strings.Repeat("long ", r.IntN(60)), string(rune('a' + r.IntN(26)))}[r.IntN(9)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 443, 1<<31 - 1, -1 << 31}[r.IntN(6)])
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(256)))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(r.Uint32()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(r.Float64())
	}
}

// both decodes raw by plan and by the type's own Unmarshal. usual: the plan has
// read it.
func both(t testing.TB, plan *Plan, of reflect.Type, raw []byte, opts Options) (usual bool) {
	t.Helper()
	opts.ManagedFields = true
	got, want := reflect.New(of).Interface(), reflect.New(of).Interface()
	_, err := plan.Decode(raw, got, opts)
	if err != nil {
		if !errors.Is(err, ErrUnusual) {
			t.Fatalf("%s: %v", of, err)
		}
		return false
	}
	if err := want.(protobuf).Unmarshal(raw); err != nil {
		t.Fatalf("%s: the plan reads what Unmarshal refuses: %v\n%x", of, err, raw)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: the plan and Unmarshal differ\n got %+v\nwant %+v\n%x", of, got, want, raw)
	}
	return true
}

func TestPlan_EveryKindDecodesAsItsUnmarshal_D1(t *testing.T) {
	var plans Plans
	table := share.NewTable()
	planned := 0
	for n, of := range kinds() {
		plan, err := plans.Of(of, nil)
		if err != nil {
			t.Log(err)
			continue
		}
		planned++
		for i := range 3 {
			r := filler{rand.New(rand.NewPCG(uint64(n), uint64(i))), i%3 == 0}
			obj := reflect.New(of)
			r.fill(obj.Elem(), 0)
			raw, err := obj.Interface().(protobuf).Marshal()
			if err != nil {
				t.Fatalf("%s: %v", of, err)
			}
			for _, opts := range []Options{{}, {Table: table}, {Table: table}, {Table: table}, {Table: table, OnlyStrings: true}} {
				if !both(t, plan, of, raw, opts) {
					t.Fatalf("%s: the plan does not read what Marshal writes: %x", of, raw)
				}
			}
		}
	}
	if planned < 200 {
		t.Errorf("%d kinds have a plan, want more", planned)
	}
	t.Logf("%d of %d kinds, %+v", planned, len(kinds()), table.Stats())
}

// Bytes that are changed at random: the plan reads them as Unmarshal does, or
// leaves them to it.
func TestPlan_ChangedBytesDecodeAsByUnmarshal_D1(t *testing.T) {
	var plans Plans
	table := share.NewTable()
	read, tried := 0, 0
	for n, of := range kinds() {
		plan, err := plans.Of(of, nil)
		if err != nil {
			continue
		}
		r := filler{rand.New(rand.NewPCG(uint64(n), 1)), n%2 == 0}
		obj := reflect.New(of)
		r.fill(obj.Elem(), 0)
		raw, _ := obj.Interface().(protobuf).Marshal()
		for range 60 {
			changed := mutate(r.Rand, raw)
			tried++
			if both(t, plan, of, changed, Options{Table: table}) {
				read++
			}
		}
	}
	if read == 0 || read == tried {
		t.Errorf("the plans read %d of %d changed messages; this tests nothing", read, tried)
	}
	t.Logf("read %d of %d", read, tried)
}

func mutate(r *rand.Rand, raw []byte) []byte {
	out := slices.Clone(raw)
	for range 1 + r.IntN(3) {
		if len(out) == 0 {
			return out
		}
		at := r.IntN(len(out))
		switch r.IntN(6) {
		case 0:
			out[at] = byte(r.Uint32())
		case 1:
			out[at] ^= 1 << r.IntN(8)
		case 2:
			out = out[:at]
		case 3:
			out = slices.Delete(out, at, min(len(out), at+1+r.IntN(3)))
		case 4:
			to := min(len(out), at+1+r.IntN(20))
			out = slices.Insert(out, to, out[at:to]...)
		default:
			out = slices.Insert(out, at, []byte{0x80, 0xff, 0, byte(r.Uint32())}[r.IntN(4)])
		}
	}
	return out
}

func TestPlan_ManagedFieldsAreSkipped(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}, {Manager: "n"}}}}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Compile(reflect.TypeFor[corev1.Pod](), nil)
	if err != nil {
		t.Fatal(err)
	}
	var without, with corev1.Pod
	if _, err := plan.Decode(raw, &without, Options{}); err != nil || without.ManagedFields != nil || without.Name != "a" {
		t.Errorf("decoded %v (%v), want no managedFields", without.ObjectMeta, err)
	}
	if _, err := plan.Decode(raw, &with, Options{ManagedFields: true}); err != nil || len(with.ManagedFields) != 2 {
		t.Errorf("decoded %v (%v), want the managedFields", with.ObjectMeta, err)
	}
}

func TestPlan_UnusualMessagesAreLeftToUnmarshal_D1(t *testing.T) {
	plan, err := Compile(reflect.TypeFor[corev1.ConfigMap](), nil)
	if err != nil {
		t.Fatal(err)
	}
	name := []byte{10, 3, 10, 1, 'a'} // metadata.name
	for text, raw := range map[string][]byte{
		"metadata twice":        slices.Concat(name, name),
		"out of order":          {18, 0, 10, 3, 10, 1, 'a'},
		"another wire type":     {8, 1},
		"a group":               {11, 12},
		"an end without group":  {12},
		"field 0":               {2, 0},
		"a long tag":            {0x8a, 0x80, 0},
		"a length beyond":       {10, 9},
		"an endless number":     {0x22, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"an entry without key":  {18, 2, 18, 0},
		"an entry without both": {18, 0},
		"an entry in disorder":  {18, 4, 18, 0, 10, 0},
		"a key that goes on":    {18, 2, 10, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a tag without value":   {10},
	} {
		var into corev1.ConfigMap
		if _, err := plan.Decode(raw, &into, Options{}); !errors.Is(err, ErrUnusual) {
			t.Errorf("%s: decoded %v (%v), want ErrUnusual", text, into, err)
		}
	}
	if _, err := plan.Decode(nil, new(corev1.Pod), Options{}); err == nil || errors.Is(err, ErrUnusual) {
		t.Errorf("decoding into another type: %v, want an error", err)
	}
	// Fields of newer servers are not unusual.
	both(t, plan, reflect.TypeFor[corev1.ConfigMap](), slices.Concat(name, []byte{0xfa, 1, 1, 'x', 0xfa, 1, 0}), Options{})
	if !both(t, plan, reflect.TypeFor[corev1.ConfigMap](), slices.Concat(name, []byte{0xf8, 1, 7, 0xfa, 2, 1, 'x', 0xfa, 2, 0}), Options{}) {
		t.Error("unknown fields are not read")
	}
}

func TestCompile_TypesWithTheirOwnUnmarshalHaveNoPlan_D1(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[handWritten](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[string]()} {
		if _, err := Compile(of, nil); err == nil {
			t.Errorf("%s has a plan, but may read its protobuf in its own way", of)
		}
	}
}

type handWritten struct {
	Name string `protobuf:"bytes,1,opt,name=name"`
}

func (*handWritten) Unmarshal([]byte) error { return nil }

// pods returns the bytes of n Pods of one owner.
func pods(t testing.TB, n int) (raws [][]byte) {
	r := filler{rand.New(rand.NewPCG(1, 2)), true}
	var pod corev1.Pod
	r.fill(reflect.ValueOf(&pod).Elem(), 0)
	pod.ManagedFields = nil
	for i := range n {
		pod.Name = "web-" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		pod.UID, pod.ResourceVersion = "uid "+"of "+pod.UID[:0]+"x", "1"
		raw, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		raws = append(raws, raw)
	}
	return raws
}

func TestPlan_PartsOfOneOwnerStandOnce_D2(t *testing.T) {
	plan, err := Compile(reflect.TypeFor[corev1.Pod](), nil)
	if err != nil {
		t.Fatal(err)
	}
	table := share.NewTable()
	var decoded []*corev1.Pod
	var sizes []Sizes
	for _, raw := range pods(t, 10) {
		pod := new(corev1.Pod)
		size, err := plan.Decode(raw, pod, Options{Table: table})
		if err != nil {
			t.Fatal(err)
		}
		decoded, sizes = append(decoded, pod), append(sizes, size)
	}
	if a, b := decoded[8], decoded[9]; reflect.ValueOf(a.Spec.NodeSelector).Pointer() != reflect.ValueOf(b.Spec.NodeSelector).Pointer() ||
		a.Spec.Affinity != b.Spec.Affinity || a.Spec.SecurityContext != b.Spec.SecurityContext {
		t.Error("equal parts of two Pods are not one")
	}
	if sizes[9].Own >= sizes[0].Own/2 || sizes[9].Shared == 0 {
		t.Errorf("the first Pod takes %+v, the tenth %+v: it is to take much less", sizes[0], sizes[9])
	}
}

func TestPlan_OnlyStringsShareNoMemoryThatCanBeWritten_D2(t *testing.T) {
	plan, err := Compile(reflect.TypeFor[corev1.Pod](), nil)
	if err != nil {
		t.Fatal(err)
	}
	table := share.NewTable()
	raws := pods(t, 5)
	var decoded []*corev1.Pod
	for _, raw := range raws {
		pod := new(corev1.Pod)
		if _, err := plan.Decode(raw, pod, Options{Table: table, OnlyStrings: true}); err != nil {
			t.Fatal(err)
		}
		decoded = append(decoded, pod)
	}
	seen := make(map[uintptr]bool)
	for _, pod := range decoded {
		writable(reflect.ValueOf(pod), func(p uintptr) {
			if seen[p] {
				t.Fatal("two Pods share memory that a transform may write to")
			}
			seen[p] = true
		})
	}
}

// writable calls f with the addresses of all that is behind v, save for strings.
func writable(v reflect.Value, f func(uintptr)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.Type().Elem() != reflect.TypeFor[time.Location]() {
			if v.Type().Elem().Size() >= 16 {
				f(v.Pointer())
			}
			writable(v.Elem(), f)
		}
	case reflect.Map:
		if !v.IsNil() {
			f(v.Pointer())
		}
	case reflect.Slice:
		if v.Len() > 0 && v.Len()*int(v.Type().Elem().Size()) >= 16 {
			f(v.Pointer())
		}
		for i := range v.Len() {
			writable(v.Index(i), f)
		}
	case reflect.Struct:
		if v.Type().PkgPath() == "unique" {
			return // metav1.FieldsV1 has a handle of a string since Kubernetes 0.38
		}
		for i := range v.NumField() {
			writable(v.Field(i), f)
		}
	}
}

// Parts stay while an object has them, whatever is decoded, dropped and collected
// meanwhile.
func TestPlan_PartsLiveWithTheirObjects_D3(t *testing.T) {
	plan, err := Compile(reflect.TypeFor[corev1.Pod](), nil)
	if err != nil {
		t.Fatal(err)
	}
	table := share.NewTable()
	raws := pods(t, 40)
	var group sync.WaitGroup
	for g := range 2 {
		group.Go(func() {
			held := make([]*corev1.Pod, len(raws))
			for i := range 400 {
				at := (i*13 + g) % len(raws)
				pod := new(corev1.Pod)
				if _, err := plan.Decode(raws[at], pod, Options{Table: table, ManagedFields: true}); err != nil {
					t.Error(err)
					return
				}
				held[at] = pod
				if i%50 == 0 {
					runtime.GC()
				}
				if i%160 == 0 {
					clear(held)
				}
			}
			runtime.GC()
			for i, pod := range held {
				var want corev1.Pod
				if pod != nil && want.Unmarshal(raws[i]) == nil && !reflect.DeepEqual(*pod, want) {
					t.Errorf("Pod %d has changed", i)
				}
			}
		})
	}
	group.Wait()
	for range 1000 {
		runtime.GC()
		if table.Stats().Entries == 0 {
			return
		}
	}
	t.Errorf("%+v are left, want none: no Pod is in use", table.Stats())
}
