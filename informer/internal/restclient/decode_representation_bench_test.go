// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/kube"
)

// benchPage decodes body as a page of T.
func benchPage[T kube.Object](b *testing.B, media string, body []byte) {
	d := decoderOf[T](b, fixture.PodKind)
	scratch := make([]byte, len(body))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		copy(scratch, body) // decoding may change its input
		page, err := d.page(media, scratch)
		if err != nil || len(page.Items) != benchObjects || page.Items[0].Err != nil {
			b.Fatal(len(page.Items), err)
		}
	}
}

// BenchmarkDecode_Unstructured decodes a page of 500 objects without their Go
// type, with our decoder and with apimachinery.
func BenchmarkDecode_Unstructured(b *testing.B) {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	for i := range benchObjects {
		list.Items = append(list.Items, *benchPod(i))
	}
	body := fixture.JSONPeer(fixture.TestScheme()).Encode(b, list)
	b.Run("flyball", func(b *testing.B) { benchPage[fixture.Loose](b, ContentJSON, body) })
	b.Run("client-go", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			var into unstructured.UnstructuredList
			if err := into.UnmarshalJSON(body); err != nil || len(into.Items) != benchObjects {
				b.Fatal(len(into.Items), err)
			}
			for i := range into.Items {
				into.Items[i].SetManagedFields(nil)
			}
		}
	})
}

// BenchmarkDecode_Metadata decodes a page of the metadata of 500 objects.
func BenchmarkDecode_Metadata(b *testing.B) {
	s := fixture.TestScheme()
	if err := metav1.AddMetaToScheme(s); err != nil {
		b.Fatal(err)
	}
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for i := range benchObjects {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: metadataKind},
			ObjectMeta: benchPod(i).ObjectMeta,
		})
	}
	for _, form := range []struct {
		name string
		p    fixture.Peer
	}{{"protobuf", fixture.ProtobufPeer(s)}, {"json", fixture.JSONPeer(s)}} {
		body := form.p.Encode(b, list)
		b.Run(form.name+"/flyball", func(b *testing.B) { benchPage[fixture.Partial](b, form.p.Media, body) })
		b.Run(form.name+"/client-go", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				var into metav1.PartialObjectMetadataList
				form.p.Decode(b, body, &into)
				for i := range into.Items {
					into.Items[i].ManagedFields = nil
				}
				if len(into.Items) != benchObjects {
					b.Fatal(len(into.Items))
				}
			}
		})
	}
}
