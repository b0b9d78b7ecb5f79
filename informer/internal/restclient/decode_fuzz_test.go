// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"bytes"
	"context"
	"io"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

var tContext = context.Background()

// FuzzDecode_Page checks that no page makes the decoder panic, and that each
// item has a name, and an object or an error.
func FuzzDecode_Page(f *testing.F) {
	s := fixture.TestScheme()
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{*fixture.SeedPod("a"), *fixture.SeedPod("b")}}
	f.Add(true, fixture.ProtobufPeer(s).Encode(f, list))
	f.Add(false, fixture.JSONPeer(s).Encode(f, list))
	f.Add(false, []byte(`{"kind":"PodList","items":[{"metadata":{"managedFields":[{"a":"\\""}],"name":"x"}}]}`))
	d, err := NewDecoder(reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, proto bool, body []byte) {
		media := ContentJSON
		if proto {
			media = ContentProtobuf
		}
		page, err := d.page(media, body)
		if err != nil {
			return
		}
		for _, item := range page.Items {
			if item.Key.Name == "" || (item.Object == nil) == (item.Err == nil) {
				t.Fatalf("got item %+v: without a name, or neither object nor error", item)
			}
			if item.Err == nil && len(item.Object.GetManagedFields()) > 0 {
				t.Fatal("managedFields are left")
			}
		}
	})
}

// FuzzDecode_Stream checks that no stream makes the decoder panic or hold much
// more than has arrived, and that it always ends.
func FuzzDecode_Stream(f *testing.F) {
	s := fixture.TestScheme()
	for _, p := range []fixture.Peer{fixture.ProtobufPeer(s), fixture.JSONPeer(s)} {
		f.Add(p.Media == ContentProtobuf, append(p.Frame(f, listwatch.FrameAdded, fixture.SeedPod("a")), p.Frame(f, listwatch.FrameDeleted, fixture.SeedPod("b"))...))
		f.Add(p.Media == ContentProtobuf, p.Frame(f, listwatch.FrameBookmark, fixture.SeedPod("")))
		f.Add(p.Media == ContentProtobuf, p.Frame(f, listwatch.FrameError, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 410, Reason: metav1.StatusReasonExpired}))
	}
	f.Add(true, []byte{0x07, 0xff, 0xff, 0xff, 1})
	f.Add(false, []byte("{\"type\":\"ADDED\",\n \"object\": {}}"))
	d, err := NewDecoder(reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, proto bool, wire []byte) {
		r := encoding.NewFrameReader(bytes.NewReader(wire), proto, encoding.MaxFrame)
		stream := &wireStream{ctx: tContext, body: io.NopCloser(nil), frames: r, decoder: d}
		for n := 0; ; n++ {
			frame, err := stream.Next()
			if err != nil {
				break
			}
			if frame.Type == "" || frame.Type == listwatch.FrameError && frame.Err == nil {
				t.Fatalf("got frame %+v: without a type or its error", frame)
			}
			if n > len(wire) {
				t.Fatal("more frames than bytes")
			}
		}
		if cap(r.Buf) > 2*len(wire)+4*encoding.SmallBuffer {
			t.Fatalf("%d bytes are held for %d that arrived", cap(r.Buf), len(wire))
		}
	})
}
