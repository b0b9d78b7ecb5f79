// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/internal/jsonspan"
	"github.com/flyball-dev/flyball/kube"
)

// page decodes a page that has arrived.
func (d *Decoder) page(media string, body []byte) (listwatch.Page[kube.Object], error) {
	return d.pageFrom(media, bytes.NewReader(body))
}

func (d *Decoder) pageFrom(media string, src io.Reader) (listwatch.Page[kube.Object], error) {
	in := encoding.NewWindow(src, encoding.MaxFrame, &encoding.Buffers{})
	defer in.Close()
	page, _, err := d.Page(media, in, false, nil)
	return page, err
}

// wholePage is page as it is simplest: the whole body is split at once.
func (d *Decoder) wholePage(media string, body []byte) (page listwatch.Page[kube.Object], err error) {
	r := &pageReader{d: d, budget: decodelimit.Budget{Limit: decodelimit.Page}}
	if media == ContentProtobuf {
		err := r.wholeProtobuf(body)
		return r.page, err
	}
	list, err := encoding.SplitJSONList(body)
	if err != nil {
		return page, err
	}
	apiVersion, kind := string(list.APIVersion), string(list.Kind)
	if list.Items == nil || !d.mayBeList(apiVersion, kind) {
		return page, d.notAList(apiVersion, kind, body)
	}
	var meta metav1.ListMeta
	if len(list.Metadata) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(list.Metadata, &meta); err != nil {
			return page, fmt.Errorf("read list metadata: %w", err)
		}
	}
	r.named = !d.isList(apiVersion, kind)
	if err := jsonspan.EachElement(list.Items, func(raw []byte) error { return r.add(r.jsonItem(raw)) }); err != nil {
		return page, err
	}
	if r.named && r.strangers {
		return page, d.notAList(apiVersion, kind, body)
	}
	r.page.ResourceVersion, r.page.Continue = meta.ResourceVersion, meta.Continue
	return r.page, nil
}

// samePage returns how two pages differ, or an empty text.
func samePage(got, want listwatch.Page[kube.Object], gotErr, wantErr error) string {
	if (gotErr == nil) != (wantErr == nil) {
		return fmt.Sprintf("error %v, want %v", gotErr, wantErr)
	}
	if gotErr != nil {
		return ""
	}
	if got.ResourceVersion != want.ResourceVersion || got.Continue != want.Continue || got.Unreadable != want.Unreadable || len(got.Items) != len(want.Items) {
		return fmt.Sprintf("page %q %q of %d items and %d unreadable ones, want %q %q, %d and %d", got.ResourceVersion, got.Continue, len(got.Items), got.Unreadable, want.ResourceVersion, want.Continue, len(want.Items), want.Unreadable)
	}
	for i := range got.Items {
		g, w := got.Items[i], want.Items[i]
		if g.Key != w.Key || g.UID != w.UID || g.ResourceVersion != w.ResourceVersion || g.Anomaly != w.Anomaly || (g.Err == nil) != (w.Err == nil) ||
			!equality.Semantic.DeepEqual(any(g.Object), any(w.Object)) || !reflect.DeepEqual(g.Metadata, w.Metadata) {
			return fmt.Sprintf("item %d is %+v, want %+v", i, g, w)
		}
	}
	return ""
}

func protoField(number byte, value []byte) []byte { return appendField(nil, number, value) }

// pagesOf are pages in forms that servers send, and in some that they do not.
func pagesOf(t testing.TB) (proto, json [][]byte) {
	s := fixture.TestScheme()
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"}, Items: []corev1.Pod{*fixture.SeedPod("a"), *fixture.SeedPod("b")}}
	proto = append(proto, fixture.ProtobufPeer(s).Encode(t, list))
	proto = append(proto, fixture.ProtobufPeer(s).Encode(t, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 410}))
	list.Items = nil
	proto = append(proto, fixture.ProtobufPeer(s).Encode(t, list), []byte("k8s\x00"), []byte("k8s"), nil)
	raw := protoField(2, protoField(2, protoField(1, protoField(1, []byte("c")))))
	kind := protoField(1, append(protoField(1, []byte("v1")), protoField(2, []byte("PodList"))...))
	for _, parts := range [][][]byte{
		{raw, kind}, {kind, raw, raw}, {kind, raw, kind}, {kind, raw, protoField(3, []byte("gzip"))}, {kind, protoField(2, nil)}, {kind},
		{kind, protoField(9, []byte("unknown")), raw, {0x50, 0x01}}, {kind, {0x5b, 0x08, 0x01, 0x5c}, raw}, {kind, {0x5b}, raw}, {kind, raw, {0xff}},
		{kind, {0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}},
		{kind, protoField(2, append(protoField(2, []byte{0x0a, 0x05, 1}), protoField(1, []byte{0x12, 0x01, '7'})...))},
		{protoField(1, protoField(2, []byte("NodeList"))), raw},
	} {
		proto = append(proto, append([]byte("k8s\x00"), bytes.Join(parts, nil)...))
	}
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","managedFields":[{"a":"\\\""}]}}`
	for _, text := range []string{
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"more"},"items":[` + pod + `, ` + pod + ` ]}`,
		`{"apiVersion":"v1","items":[` + pod + `],"kind":"PodList","metadata":{"resourceVersion":"9"}}`,
		`{"apiVersion":"v1","items":[{"metadata":{"name":"x","managedFields":[{"manager":"m"}]}},` + pod + `],"kind":"PodList"}`,
		`{"apiVersion":"v1","items":[{"metadata":{"name":"x"}}],"kind":"OtherList"}`,
		`{"items":[{"metadata":{"name":"x"}}]}`, `{"items":[` + pod + `]}`, `{"items":[],"kind":"List","apiVersion":"v1"}`,
		`{"items":[{"kind":"Node","apiVersion":"v1","metadata":{"name":"x"}}, ` + pod + `],"kind":"PodList"}`,
		`{"items":[{"metadata":{}},{"spec":5,"metadata":{"name":"x"}}],"kind":"PodList"}`,
		`{"items":[1, "a" , null,,{"a":[}, ` + pod + `]}`, `{"items":[1 "a,b" ,` + pod + `],"kind":"PodList"}`, `{"kind":"PodList","items":[1 }, 2]}`, `{"kind":"PodList","items":[1 }}`,
		`{"kind":"PodList","items":[` + pod + `],"items":null}`, `{"kind":"PodList","items":[` + pod + `],"items":[{"metadata":{"name":"z"}}]}`,
		`{"kind":"PodList","items":null}`, `{"kind":"PodList","items":{}}`, `{"kind":"PodList","items":5}`, `{"kind":"PodList","items":"x"}`, `{"kind":"PodList"}`, `{}`, ``, `[`, ` { } trailing`,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"items":[1]}`, `{"kind":"NodeList","apiVersion":"v1","items":[` + pod + `]}`,
		`{"kind":"PodList","items":[` + pod + `],"kind":"Status"}`, `{"kind":"PodList","metadata":5,"items":[]}`, `{"kind":"PodList","items":[` + pod, `{"kind":"PodList","items":[` + pod + `]`, `{"kind" : "PodList" , "items" : [ ] , "metadata" : { } } {`,
		`{"kind":"PodList","items":[` + pod + `] x}`, `{"kind":"PodList" "items":[]}`, `{"kind":"PodList",}`, `{"items":[` + pod + `],"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"9"}}`,
	} {
		json = append(json, []byte(text))
	}
	return proto, json
}

// A page that is split as it arrives, in any parts, is what the whole body would
// be.
func TestDecode_PageAsItArrivesIsTheWholeOne_D6(t *testing.T) {
	typed, loose := decoderOf[*corev1.Pod](t, fixture.PodKind), decoderOf[*unstructured.Unstructured](t, fixture.PodKind)
	proto, json := pagesOf(t)
	for _, body := range proto {
		comparePages(t, typed, ContentProtobuf, body)
	}
	for _, body := range json {
		comparePages(t, typed, ContentJSON, body)
		comparePages(t, loose, ContentJSON, body)
	}
}

func comparePages(t *testing.T, d *Decoder, media string, body []byte) {
	t.Helper()
	want, wantErr := d.wholePage(media, bytes.Clone(body))
	for name, src := range map[string]io.Reader{
		"at once": bytes.NewReader(body), "byte by byte": iotest.OneByteReader(bytes.NewReader(body)), "with its end": iotest.DataErrReader(bytes.NewReader(body)),
	} {
		got, err := d.pageFrom(media, src)
		if diff := samePage(got, want, err, wantErr); diff != "" {
			t.Errorf("%s, %q: %s", name, body, diff)
		}
	}
}

func FuzzDecode_PageAsItArrives(f *testing.F) {
	proto, json := pagesOf(f)
	for _, body := range proto {
		f.Add(true, body)
	}
	for _, body := range json {
		f.Add(false, body)
	}
	typed, err := NewDecoder(reflect.TypeFor[*corev1.Pod](), fixture.PodKind, false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, proto bool, body []byte) {
		media := ContentJSON
		if proto {
			media = ContentProtobuf
		}
		comparePages(t, typed, media, body)
	})
}

// endless sends one item after the other, and counts how far it is asked for
// them.
type endless struct {
	head, item string
	left, sent int
	each       func()
}

func (e *endless) Read(p []byte) (int, error) {
	if e.head != "" {
		n := copy(p, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	if e.left == 0 {
		return 0, io.EOF
	}
	e.left--
	e.each()
	e.sent += len(e.item)
	e.head = e.item
	return 0, nil
}

// Neither a page nor a list without pages stands in memory as it was sent: the
// buffer is as large as the largest item.
func TestDecode_NoBodyStandsInMemory_D6(t *testing.T) {
	const items, size = 2000, 10 << 10
	pod := func(comma string) string {
		return comma + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("x", size) + `"}}}`
	}
	taken := 0
	src := &endless{head: `{"apiVersion":"v1","kind":"PodList","items":[` + pod(""), item: pod(","), left: items, each: func() {}}
	in := encoding.NewWindow(src, encoding.MaxWholeList, &encoding.Buffers{})
	defer in.Close()
	most := 0
	_, _, err := decoderOf[*unstructured.Unstructured](t, fixture.PodKind).Page(ContentJSON, in, true, func(item listwatch.Item[kube.Object]) listwatch.Item[kube.Object] {
		taken++
		most = max(most, src.sent-taken*len(src.item))
		item.Object = nil
		return item
	})
	if !errors.Is(err, jsonspan.ErrNotJSON) {
		t.Fatalf("got %v, want an error at the end, which is missing", err)
	}
	if taken < items-1 {
		t.Errorf("%d of %d items were taken before the list had arrived", taken, items)
	}
	if most > 1<<20 {
		t.Errorf("%d bytes were read ahead of the items", most)
	}
	if held := in.Held(); held > 256<<10 {
		t.Errorf("a buffer of %d bytes for items of %d", held, size)
	}
}
