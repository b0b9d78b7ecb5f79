// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/internal/jsonspan"
	"github.com/flyball-dev/flyball/internal/testing/hostile"
	"github.com/flyball-dev/flyball/kube"
)

const emptyContainers = 3 << 20 // bytes

// bombs are small Pods that would become large.
func bombs() map[string]string {
	list := "[{}" + strings.Repeat(",{}", emptyContainers/3) + "]"
	return map[string]string{
		"containers": `{"metadata":{"name":"b","resourceVersion":"3"},"spec":{"containers":` + list + `}}`,
		"metadata":   `{"metadata":{"name":"b","resourceVersion":"3","ownerReferences":` + list + `},"spec":{"containers":` + list + `}}`,
	}
}

func allocates(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// An object that would take too much memory affects only itself, in a list and
// in a watch.
func TestDecode_HeavyObjectIsSetApartAndNotDecoded_B13(t *testing.T) {
	d := decoderOf[*corev1.Pod](t, fixture.PodKind)
	check := func(name string, item listwatch.Item[kube.Object]) {
		t.Helper()
		heavy, ok := errors.AsType[*kube.TooLargeError](item.Err)
		if !ok || heavy.Limit != decodelimit.Object || heavy.Decoded <= heavy.Limit || item.Key.Name != "b" || item.ResourceVersion != "3" {
			t.Errorf("%s: got %s@%s, %v; want b@3 with a TooLargeError of the decoded size", name, item.Key, item.ResourceVersion, item.Err)
		}
		if item.Err != nil && !strings.Contains(item.Err.Error(), fmt.Sprint(decodelimit.Object)) {
			t.Errorf("%s: %q does not name the limit", name, item.Err)
		}
	}
	for name, bomb := range bombs() {
		page := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}},` + bomb + `,{"metadata":{"name":"c"}}]}`
		took := allocates(func() {
			got, err := d.page(ContentJSON, []byte(page))
			if err != nil || len(got.Items) != 3 || got.Items[0].Err != nil || got.Items[2].Err != nil {
				t.Fatalf("%s: got %d items, %v; want three, of which one is set apart", name, len(got.Items), err)
			}
			check(name, got.Items[1])
		})
		if took > 96<<20 {
			t.Errorf("%s: a page of %d bytes allocates %d", name, len(page), took)
		}
		frame, err := d.frame(false, []byte(`{"type":"ADDED","object":`+strings.Replace(bomb, "{", `{"kind":"Pod","apiVersion":"v1",`, 1)+`}`))
		if err != nil {
			t.Fatal(err)
		}
		check(name+", watched", frame.Item)
	}
	meta := &metav1.ObjectMeta{Name: "b", ResourceVersion: "3"}
	metadata, _ := meta.Marshal()
	spec := bytes.Repeat([]byte{0x12, 0x00}, emptyContainers/2) // field 2, empty containers
	message := appendField(appendField(nil, 1, metadata), 2, spec)
	took := allocates(func() { check("protobuf", d.protobufItem(message, decodelimit.Alone())) })
	if took > 64<<20 {
		t.Errorf("protobuf of %d bytes allocates %d", len(message), took)
	}
}

func appendField(to []byte, number byte, value []byte) []byte {
	to = append(to, number<<3|2)
	N := len(value)
	for ; N >= 0x80; N >>= 7 {
		to = append(to, byte(N)|0x80)
	}
	return append(append(to, byte(N)), value...)
}

// A page whose objects together would take too much memory is refused, so that
// smaller pages are requested.
func TestDecode_HeavyPageIsRefused_B14(t *testing.T) {
	const page = 32 << 20
	item := `{"metadata":{"name":"a"}}`
	body := []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + item + strings.Repeat(","+item, page/len(item)) + `]}`)
	d := decoderOf[*corev1.Pod](t, fixture.PodKind)
	var err error
	took := allocates(func() { _, err = d.page(ContentJSON, body) })
	heavy, ok := errors.AsType[*kube.TooLargeError](err)
	if !ok || heavy.Limit != decodelimit.Page || heavy.Decoded <= decodelimit.Page {
		t.Errorf("got %v, want a TooLargeError with the limit of a page", err)
	}
	if took > 2*decodelimit.Page {
		t.Errorf("%d bytes were allocated before it was refused", took)
	}
	if got, err := decoderOf[*unstructured.Unstructured](t, fixture.PodKind).page(ContentJSON, append(bytes.Clone(body[:80]), `]}`...)); err != nil {
		t.Errorf("an empty list: %d items, %v", len(got.Items), err)
	}
}

// Garbage among the items of a list affects only itself, if its end can be
// found.
func TestDecode_GarbageInAListCostsOneItem_B15(t *testing.T) {
	endless := map[string]bool{ // which take the end of the list along
		"an end": true, "an object that does not end": true, "a string that does not end": true, "bytes of all values": true,
		"a list that ends as an object": true,
	}
	d := decoderOf[*corev1.ConfigMap](t, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	named := hostile.Input{Name: "an object with garbage in it", Text: []byte(`{"metadata":{"name":"b","resourceVersion":"3"},"data":{"a":garbage}}`)}
	for _, garbage := range append(hostile.Garbage(), named) {
		body := fmt.Appendf(nil, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}},%s,{"metadata":{"name":"c"}}]}`, garbage.Text)
		page, err := d.page(ContentJSON, body)
		if endless[garbage.Name] {
			if err == nil {
				t.Errorf("%s: a list is taken of which the end cannot be found", garbage.Name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v, want the other two", garbage.Name, err)
			continue
		}
		sound, apart := "", page.Unreadable
		for _, item := range page.Items {
			if item.Err != nil {
				apart++
				continue
			}
			sound += item.Key.Name
		}
		if sound != "ac" || apart == 0 {
			t.Errorf("%s: got %q and %d set apart, want a and c, and the garbage set apart", garbage.Name, sound, apart)
		}
		if garbage.Name == named.Name && (len(page.Items) != 3 || page.Items[1].Key.Name != "b" || page.Items[1].ResourceVersion != "3") {
			t.Errorf("%s: %+v, want b set apart by its name", garbage.Name, page.Items)
		}
	}
}

// An unusual object affects no other and causes no panic, in any
// representation, in lists and watches.
func TestDecode_CorpusHarmsNoOtherObject(t *testing.T) {
	corpus[*corev1.Pod](t)
	corpus[*unstructured.Unstructured](t)
	corpus[*metav1.PartialObjectMetadata](t)
}

func corpus[T kube.Object](t *testing.T) {
	const head = `"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}`
	pod := func(name string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"}}`
	}
	d := decoderOf[T](t, fixture.PodKind)
	inputs := hostile.Objects(8<<10, head, "spec.containers", "spec.nodeSelector", "status.conditions", "metadata.labels", "metadata.ownerReferences", "unknown", "spec")
	for _, garbage := range hostile.Garbage() {
		inputs = append(inputs, hostile.Input{Name: garbage.Name, Text: fmt.Appendf(nil, `{%s,"spec":{"nodeName":%s}}`, head, garbage.Text)})
	}
	for _, input := range inputs {
		body := fmt.Appendf(nil, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[%s,%s,%s]}`, pod("a"), input.Text, pod("c"))
		page, err := d.page(ContentJSON, body)
		if err != nil {
			if splits(input.Text) {
				t.Errorf("%T, list, %s: %v, want the other objects", d.empty(), input.Name, err)
			}
			continue
		}
		report(t, "list", input.Name, page.Items)

		text := ""
		for _, object := range []string{pod("a"), string(input.Text), pod("c")} {
			text += `{"type":"ADDED","object":` + object + "}\n"
		}
		var items []listwatch.Item[kube.Object]
		frames := encoding.NewFrameReader(strings.NewReader(text), false, encoding.MaxFrame)
		for {
			raw, err := frames.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if _, garbled := errors.AsType[*encoding.GarbledFrame](err); garbled {
				continue
			}
			if err != nil {
				t.Errorf("%T, watch, %s: %v", d.empty(), input.Name, err)
				break
			}
			if frame, err := d.frame(false, raw); err == nil {
				items = append(items, frame.Item)
			}
		}
		report(t, "watch", input.Name, items)
	}
}

// splits reports whether the end of an object can be found in its bytes.
func splits(object []byte) bool { return jsonspan.SkipValue(object, 0) == len(object) }

func report(t *testing.T, by, name string, items []listwatch.Item[kube.Object]) {
	t.Helper()
	sound := ""
	for _, item := range items {
		if item.Err == nil && base.IsNil(item.Object) {
			t.Errorf("%s, %s: %s is neither an object nor an error", by, name, item.Key)
		}
		if item.Err == nil && item.Key.Name != "b" {
			sound += item.Key.Name
		}
	}
	if sound != "ac" {
		t.Errorf("%s, %s: of the other objects %q came, want a and c", by, name, sound)
	}
}
