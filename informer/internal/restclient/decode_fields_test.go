// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"bytes"
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// sidecars are Pods with all that a projection may drop.
func sidecars() *corev1.PodList {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	for _, name := range []string{"a", "b"} {
		list.Items = append(list.Items, corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "prod", UID: "u", ResourceVersion: "7", Labels: map[string]string{"app": name}, Annotations: map[string]string{"a": "b"},
				Finalizers: []string{"f"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}},
			},
			Spec:   corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}, {Name: "d", Env: []corev1.EnvVar{{Name: "e", Value: "v"}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
		})
	}
	return list
}

func projections(t *testing.T) []*fields.Set {
	t.Helper()
	var out []*fields.Set
	for _, paths := range [][]string{{}, {"spec.nodeName"}, {"spec.containers.image", "status"}, {"metadata"}, {"metadata.annotations", "spec"}} {
		s, err := fields.Parse(paths...)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// prunes decodes the list whole and projected: the objects differ by what is pruned.
func prunes[T kube.Object](t *testing.T, form fixture.Peer) {
	whole, err := NewDecoder(reflect.TypeFor[T](), podKind, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range projections(t) {
		d := whole.keeping(Kept{Fields: s})
		all, err := whole.keeping(Kept{}).page(form.Media, form.Encode(t, sidecars())) // to be modified
		if err != nil {
			t.Fatal(err)
		}
		in := encoding.NewWindow(bytes.NewReader(form.Encode(t, sidecars())), encoding.MaxFrame, &encoding.Buffers{})
		page, _, err := d.Page(form.Media, in, false, func(item listwatch.Item[kube.Object]) listwatch.Item[kube.Object] {
			if item.Raw != nil {
				t.Errorf("%s, fields %q: an item has bytes, which would be packed in place of the object", form.Media, s)
			}
			return item
		})
		in.Close()
		if err != nil || len(page.Items) != 2 {
			t.Fatalf("%s, fields %q: %d items, error %v", form.Media, s, len(page.Items), err)
		}
		for i, item := range page.Items {
			want := all.Items[i].Object
			fields.Prune(want, s)
			if item.Err != nil || !reflect.DeepEqual(item.Object, want) {
				t.Errorf("%s, fields %q: decoded %s, error %v, want %s", form.Media, s, text(t, item.Object), item.Err, text(t, want))
			}
			if item.Key != kube.KeyOf(want) || item.UID != "u" || item.ResourceVersion != "7" {
				t.Errorf("%s, fields %q: the item is %s, %s, %s", form.Media, s, item.Key, item.UID, item.ResourceVersion)
			}
		}
	}
}

func TestDecoder_KeepsTheFields_D4(t *testing.T) {
	for _, form := range []fixture.Peer{fixture.ProtobufPeer(fixture.TestScheme()), fixture.JSONPeer(fixture.TestScheme())} {
		prunes[*corev1.Pod](t, form)
		if form.Media == ContentJSON {
			prunes[*unstructured.Unstructured](t, form)
		}
	}
}

func TestDecoder_KeepsTheFieldsOfBrokenObjects_D4(t *testing.T) {
	whole, err := NewDecoder(reflect.TypeFor[*corev1.Pod](), podKind, false)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"9"},"items":[` +
		`{"metadata":{"name":"a","namespace":"prod","uid":"u","resourceVersion":"7","labels":{"app":"a"},"annotations":{"a":"b"}},"spec":{"nodeName":7}}]}`)
	page, err := whole.keeping(Kept{Fields: projections(t)[1]}).page(ContentJSON, slices.Clone(body))
	if err != nil || len(page.Items) != 1 || page.Items[0].Err == nil {
		t.Fatalf("page %+v, error %v, want one broken item", page, err)
	}
	meta := page.Items[0].Metadata
	if meta == nil || meta.Labels["app"] != "a" || meta.Annotations != nil {
		t.Errorf("the metadata of a broken object is %+v, want the labels without the annotations", meta)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Objects of which fields are dropped are told from whole ones by their resourceVersion.
func TestDecoder_ProjectedObjectHasAnOriginOfItsOwn_D4(t *testing.T) {
	for _, form := range []fixture.Peer{fixture.ProtobufPeer(fixture.TestScheme()), fixture.JSONPeer(fixture.TestScheme())} {
		whole, err := NewDecoder(reflect.TypeFor[*corev1.Pod](), podKind, false)
		if err != nil {
			t.Fatal(err)
		}
		list := sidecars()
		list.Items[0].ResourceVersion = "5000001"
		seen := map[*byte]bool{}
		for i := range 6 {
			d := whole.keeping(Kept{Parts: true})
			if i%2 == 0 {
				d = whole.keeping(Kept{Parts: true, Fields: projections(t)[1]})
			}
			page, err := d.page(form.Media, form.Encode(t, list))
			if err != nil {
				t.Fatal(err)
			}
			at := unsafe.StringData(page.Items[0].Object.GetResourceVersion())
			if i%2 == 0 && seen[at] {
				t.Errorf("%s: decoding %d shares its resourceVersion with another", form.Media, i)
			}
			seen[at] = true
			defer runtime.KeepAlive(page)
		}
	}
}
