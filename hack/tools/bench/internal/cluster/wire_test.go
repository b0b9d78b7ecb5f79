// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"iter"
	"reflect"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

func encoderOf(t *testing.T, form Form) *Encoder {
	t.Helper()
	e, err := NewEncoder(form)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// collected returns what seq yields.
func collected(t *testing.T, seq iter.Seq2[[]byte, error]) [][]byte {
	t.Helper()
	var all [][]byte
	for text, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}

// eventIn returns the type and the body of a frame.
func eventIn(t *testing.T, form Form, frame []byte) (string, []byte) {
	t.Helper()
	var event metav1.WatchEvent
	if form == JSON {
		if err := json.Unmarshal(frame, &event); err != nil {
			t.Fatal(err)
		}
	} else {
		if n := int(binary.BigEndian.Uint32(frame)); n != len(frame)-4 {
			t.Fatalf("a frame of %d bytes says that it has %d", len(frame)-4, n)
		}
		if err := event.Unmarshal(frame[4:]); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(event.Object.Raw, []byte("k8s\x00")) {
			t.Fatal("the object is not in the frame of runtime.Unknown")
		}
	}
	return event.Type, event.Object.Raw
}

func TestPods_AreDecodedFromEachForm(t *testing.T) {
	p := NewPods(PodOptions{Count: 60, Owners: 30, ManagedFields: true})
	for _, form := range []Form{JSON, Protobuf} {
		e := encoderOf(t, form)
		equal := func(i int, got *corev1.Pod, gvk bool) {
			want := p.Pod(i)
			if !gvk {
				want.TypeMeta = metav1.TypeMeta{}
			}
			got.TypeMeta = want.TypeMeta // the decoder of the typed scheme removes it
			if !apiequality.Semantic.DeepEqual(got, want) {
				t.Fatalf("%s: Pod %d is decoded as\n%+v\nwant\n%+v", form, i, got, want)
			}
		}
		frames := collected(t, Events(e, p.Collection()))
		for i, frame := range frames {
			typ, body := eventIn(t, form, frame)
			obj, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body)
			if err != nil {
				t.Fatal(err)
			}
			pod := obj.(*corev1.Pod)
			if i == p.Len() {
				if typ != "BOOKMARK" || pod.Annotations[metav1.InitialEventsAnnotationKey] != "true" || pod.ResourceVersion != strconv.FormatInt(p.Version(), 10) {
					t.Errorf("%s: the last event is %s %+v", form, typ, pod)
				}
				continue
			}
			if typ != "ADDED" {
				t.Errorf("%s: event %d is %s", form, i, typ)
			}
			equal(i, pod, true)
		}
		if len(frames) != p.Len()+1 {
			t.Errorf("%s: %d frames, want %d and a bookmark", form, len(frames), p.Len())
		}
		i := 0
		for n, body := range collected(t, Pages(e, p.Collection(), 25)) {
			obj, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body)
			if err != nil {
				t.Fatal(err)
			}
			list := obj.(*corev1.PodList)
			if want := []string{"1", "2", ""}[n]; list.Continue != want || (list.RemainingItemCount == nil) != (want == "") {
				t.Errorf("%s: page %d continues at %q, want %q", form, n, list.Continue, want)
			}
			for _, pod := range list.Items {
				equal(i, &pod, false)
				i++
			}
		}
		if i != p.Len() {
			t.Errorf("%s: pages of %d Pods", form, i)
		}
	}
}

func testResources[T Object](t *testing.T, r *Resources[T], low, high int) {
	t.Helper()
	s := runtime.NewScheme()
	if err := AddFleetToScheme(s); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(s).UniversalDeserializer()
	e := encoderOf(t, JSON)
	sum, seen, last := 0, map[string]bool{}, ""
	for i, frame := range collected(t, Events(e, r.Collection())) {
		_, body := eventIn(t, JSON, frame)
		if i == r.Len() {
			break
		}
		sum += len(body)
		obj, err := runtime.Decode(decoder, body)
		if err != nil {
			t.Fatal(err)
		}
		typed := r.Typed(i)
		if !apiequality.Semantic.DeepEqual(obj, typed) {
			t.Fatalf("%s %d is decoded as\n%+v\nwant\n%+v", r.Kind(), i, obj, typed)
		}
		loose, err := runtime.Decode(unstructured.UnstructuredJSONScheme, body)
		if err != nil || !reflect.DeepEqual(loose, r.Unstructured(i)) {
			t.Fatalf("%s %d is decoded as other fields (%v)", r.Kind(), i, err)
		}
		key := typed.GetNamespace() + "/" + typed.GetName()
		if key <= last || seen[string(typed.GetUID())] || seen[typed.GetResourceVersion()] {
			t.Fatalf("%s comes after %s, or has its UID or version from another", key, last)
		}
		last, seen[string(typed.GetUID())], seen[typed.GetResourceVersion()] = key, true, true
		twin := typed.DeepCopyObject()
		if !reflect.DeepEqual(runtime.Object(typed), twin) {
			t.Fatalf("%s: a copy differs", key)
		}
		shares(t, r.Kind(), reflect.ValueOf(typed), reflect.ValueOf(twin))
	}
	mean := sum / r.Len()
	t.Logf("%s: %d bytes of JSON", r.Kind(), mean)
	if mean < low || mean > high {
		t.Errorf("a %s has %d bytes of JSON on average, want %d to %d", r.Kind(), mean, low, high)
	}
	for _, body := range collected(t, Pages(e, r.Collection(), 16)) {
		if _, err := runtime.Decode(decoder, body); err != nil {
			t.Fatal(err)
		}
	}
}

// shares fails if a and b share a pointer, a slice or a map.
func shares(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	switch a.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if a.IsNil() || a.Kind() == reflect.Pointer && a.Type().Elem().PkgPath() == "time" {
			return
		}
		if a.Pointer() == b.Pointer() && (a.Kind() != reflect.Slice || a.Cap() > 0) {
			t.Fatalf("%s is shared with a copy", path)
		}
	}
	switch a.Kind() {
	case reflect.Pointer:
		shares(t, path, a.Elem(), b.Elem())
	case reflect.Slice:
		for i := range a.Len() {
			shares(t, path+"[]", a.Index(i), b.Index(i))
		}
	case reflect.Map:
		for _, key := range a.MapKeys() {
			shares(t, path+"{}", a.MapIndex(key), b.MapIndex(key))
		}
	case reflect.Struct:
		for i := range a.NumField() {
			shares(t, path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	}
}

func TestResources_AreDecodedAndOfTheSizeThatIsStated(t *testing.T) {
	opts := ResourceOptions{Count: 50}
	testResources(t, NewCertificates(opts), 1_300, 1_700)
	testResources(t, NewDatabases(opts), 7_600, 8_400)
	testResources(t, NewWorkflows(opts), 57_000, 63_000)
}

func TestEncoder_RefusesACustomResourceAsProtobuf(t *testing.T) {
	if _, err := encoderOf(t, Protobuf).Body(NewCertificates(ResourceOptions{Count: 1}).Unstructured(0)); err == nil {
		t.Error("a custom resource was encoded as protobuf, which no server does")
	}
}
