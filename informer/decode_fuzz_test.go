// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var tContext = context.Background()

func seedPod(name string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "prod", UID: "u", ResourceVersion: "7", Labels: map[string]string{"app": "web"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1("{}")}},
		},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// FuzzDecode_Page: no page makes the decoder panic, and what it gives is
// complete: each item has a name, and an object or an error.
func FuzzDecode_Page(f *testing.F) {
	s := testScheme()
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{*seedPod("a"), *seedPod("b")}}
	f.Add(true, protobufPeer(s).encode(f, list))
	f.Add(false, jsonPeer(s).encode(f, list))
	f.Add(false, []byte(`{"kind":"PodList","items":[{"metadata":{"managedFields":[{"a":"\\""}],"name":"x"}}]}`))
	d, err := newDecoder[*corev1.Pod](reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, proto bool, body []byte) {
		media := contentJSON
		if proto {
			media = contentProtobuf
		}
		page, err := d.page(media, body)
		if err != nil {
			return
		}
		for _, item := range page.Items {
			if item.Key.Name == "" || (item.Object == nil) == (item.Err == nil) {
				t.Fatalf("got item %+v: without a name, or neither object nor error", item)
			}
			if item.Err == nil && len(item.Object.ManagedFields) > 0 {
				t.Fatal("managedFields are left")
			}
		}
	})
}

// FuzzDecode_Stream: no stream makes the decoder panic or hold more than a
// little over what has arrived, and it always ends.
func FuzzDecode_Stream(f *testing.F) {
	s := testScheme()
	for _, p := range []peer{protobufPeer(s), jsonPeer(s)} {
		f.Add(p.media == contentProtobuf, append(p.frame(f, FrameAdded, seedPod("a")), p.frame(f, FrameDeleted, seedPod("b"))...))
		f.Add(p.media == contentProtobuf, p.frame(f, FrameBookmark, seedPod("")))
		f.Add(p.media == contentProtobuf, p.frame(f, FrameError, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 410, Reason: metav1.StatusReasonExpired}))
	}
	f.Add(true, []byte{0x07, 0xff, 0xff, 0xff, 1})
	f.Add(false, []byte("{\"type\":\"ADDED\",\n \"object\": {}}"))
	d, err := newDecoder[*corev1.Pod](reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, proto bool, wire []byte) {
		r := newFrameReader(bytes.NewReader(wire), proto, maxFrame)
		stream := &restStream[*corev1.Pod]{ctx: tContext, body: io.NopCloser(nil), frames: r, decoder: d}
		for n := 0; ; n++ {
			frame, err := stream.Next()
			if err != nil {
				break
			}
			if frame.Type == "" || frame.Type == FrameError && frame.Err == nil {
				t.Fatalf("got frame %+v: without a type or its error", frame)
			}
			if n > len(wire) {
				t.Fatal("more frames than bytes")
			}
		}
		if cap(r.buf) > 2*len(wire)+4*smallBuffer {
			t.Fatalf("%d bytes are held for %d that arrived", cap(r.buf), len(wire))
		}
	})
}

// FuzzStatus: whatever the body of an error, an error of the right code comes
// out.
func FuzzStatus(f *testing.F) {
	s := testScheme()
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 403, Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{RetryAfterSeconds: 3}}
	f.Add(403, "7", protobufPeer(s).encode(f, status))
	f.Add(403, "x", jsonPeer(s).encode(f, status))
	f.Add(404, "", []byte("404 page not found\n"))
	f.Add(502, "-1", []byte("<html>\xff"))
	f.Fuzz(func(t *testing.T, code int, retryAfter string, body []byte) {
		if code < 400 || code > 599 {
			return
		}
		answer := &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {retryAfter}}, Body: io.NopCloser(bytes.NewReader(body))}
		err := errorOf(answer, "list", schema.GroupResource{Resource: "pods"})
		if err == nil || err.Error() == "" && len(body) == 0 {
			t.Fatal("no error comes out")
		}
		if r, wait := classify(err); r == 0 || wait < 0 {
			t.Fatalf("got result %d and a wait of %v", r, wait)
		}
	})
}
