// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/kube"
)

// stream decodes all frames of a stream, those that have arrived together one by one or together.
func stream(d *Decoder, p fixture.Peer, src io.Reader, together ...bool) (frames []listwatch.Frame[kube.Object], err error) {
	s := NewStream(tContext, io.NopCloser(src), p.Media == ContentProtobuf, d, nil)
	s.setTogether(slices.Contains(together, true))
	for {
		f, err := s.Next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

// roundTrips decodes random objects of one kind in each form, and compares them
// with client-go's results for the same bytes.
func roundTrips[T kube.Object, L runtime.Object](t *testing.T, kind schema.GroupVersionKind, fill func(T), list func([]T) L, peers ...fixture.Peer) {
	for _, p := range peers {
		for _, keep := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %s keepManagedFields=%v", kind.Kind, p.Media, keep), func(t *testing.T) {
				d, err := NewDecoder(reflect.TypeFor[T](), kind, keep)
				if err != nil {
					t.Fatal(err)
				}
				var wire []byte
				var all []T
				var sizes []int
				for i := range 20 {
					obj := d.empty()
					fill(obj.(T))
					obj.SetName(fmt.Sprintf("object-%d", i))
					obj.SetResourceVersion(fmt.Sprint(i + 1))
					obj.GetObjectKind().SetGroupVersionKind(kind)
					if i%2 == 0 {
						obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "one \"quoted\" \\", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a}]":{}}}`)}, {Manager: "two"}})
					} else {
						obj.SetManagedFields(nil)
					}
					wire = append(wire, p.Frame(t, listwatch.FrameAdded, obj)...)
					want := d.empty()
					p.Decode(t, p.Encode(t, obj), want)
					if !keep {
						want.SetManagedFields(nil)
					}
					all = append(all, want.(T))
				}
				frames, err := stream(d, p, bytes.NewReader(wire))
				if err != io.EOF || len(frames) != len(all) {
					t.Fatalf("got %d frames and %v, want %d and EOF", len(frames), err, len(all))
				}
				for i, f := range frames {
					same(t, f.Item, all[i])
					sizes = append(sizes, int(f.Item.Bytes))
				}
				if least := sizedAs(t, p, all); !slices.EqualFunc(sizes, least, func(got, least int) bool { return got >= least && got <= least+64 }) {
					t.Errorf("sizes %v, want about %v: what the server sent but for managed fields", sizes, least)
				}
				// In the smallest pieces.
				frames, err = stream(d, p, iotest.OneByteReader(bytes.NewReader(wire)))
				if err != io.EOF || len(frames) != len(all) {
					t.Fatalf("byte by byte: got %d frames and %v, want %d and EOF", len(frames), err, len(all))
				}
				for i, f := range frames {
					same(t, f.Item, all[i])
				}
				l := list(all)
				page, err := d.page(p.Media, p.Encode(t, l))
				if err != nil || len(page.Items) != len(all) || page.ResourceVersion != "99" || page.Continue != "more" {
					t.Fatalf("list: got %d items of version %q, continue %q, and %v; want %d of 99, more", len(page.Items), page.ResourceVersion, page.Continue, err, len(all))
				}
				for i, item := range page.Items {
					same(t, item, all[i])
				}
			})
		}
	}
}

// sizedAs returns the sizes of the objects in p's form, without the frame
// around them.
func sizedAs[T kube.Object](t *testing.T, p fixture.Peer, objects []T) (sizes []int) {
	for _, obj := range objects {
		size := len(p.Encode(t, obj)) - 1 // the newline
		if p.Media == ContentProtobuf {
			size -= 60 // at most, of the envelope
		}
		sizes = append(sizes, size)
	}
	return sizes
}

func same[T kube.Object](t *testing.T, got listwatch.Item[kube.Object], want T) {
	t.Helper()
	if got.Err != nil {
		t.Fatalf("%s: %v", want.GetName(), got.Err)
	}
	if !equality.Semantic.DeepEqual(got.Object, want) || !reflect.DeepEqual(got.Object.GetObjectKind().GroupVersionKind(), want.GetObjectKind().GroupVersionKind()) {
		t.Fatalf("got  %+v\nwant %+v\nthe same bytes make another object than client-go makes", got.Object, want)
	}
	if got.Key != kube.KeyOf(want) || got.UID != want.GetUID() || got.ResourceVersion != want.GetResourceVersion() {
		t.Fatalf("got identity %v %q %q of %s", got.Key, got.UID, got.ResourceVersion, kube.KeyOf(want))
	}
}

func deref[T any](all []*T) []T {
	var out []T
	for _, p := range all {
		out = append(out, *p)
	}
	return out
}

func TestDecode_SameAsClientGo(t *testing.T) {
	s := fixture.TestScheme()
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs), rand.NewSource(1), scheme.Codecs).NilChance(.3).NumElements(1, 3)
	both := []fixture.Peer{fixture.ProtobufPeer(s), fixture.JSONPeer(s)}
	lm := metav1.ListMeta{ResourceVersion: "99", Continue: "more"}
	tm := func(kind schema.GroupVersionKind) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind + "List"}
	}
	core := corev1.SchemeGroupVersion
	roundTrips(t, core.WithKind("Pod"), func(o *corev1.Pod) { filler.Fill(o) }, func(a []*corev1.Pod) *corev1.PodList {
		return &corev1.PodList{TypeMeta: tm(core.WithKind("Pod")), ListMeta: lm, Items: deref(a)}
	}, both...)
	roundTrips(t, core.WithKind("ConfigMap"), func(o *corev1.ConfigMap) { filler.Fill(o) }, func(a []*corev1.ConfigMap) *corev1.ConfigMapList {
		return &corev1.ConfigMapList{TypeMeta: tm(core.WithKind("ConfigMap")), ListMeta: lm, Items: deref(a)}
	}, both...)
	roundTrips(t, core.WithKind("Secret"), func(o *corev1.Secret) { filler.Fill(o) }, func(a []*corev1.Secret) *corev1.SecretList {
		return &corev1.SecretList{TypeMeta: tm(core.WithKind("Secret")), ListMeta: lm, Items: deref(a)}
	}, both...)
	deployment := appsv1.SchemeGroupVersion.WithKind("Deployment")
	roundTrips(t, deployment, func(o *appsv1.Deployment) { filler.Fill(o) }, func(a []*appsv1.Deployment) *appsv1.DeploymentList {
		return &appsv1.DeploymentList{TypeMeta: tm(deployment), ListMeta: lm, Items: deref(a)}
	}, both...)
	roundTrips(t, fixture.SiteKind, func(o *fixture.Site) { filler.Fill(o) }, func(a []*fixture.Site) *fixture.SiteList {
		return &fixture.SiteList{TypeMeta: tm(fixture.SiteKind), ListMeta: lm, Items: deref(a)}
	}, fixture.JSONPeer(s))
}

func TestDecode_BadObjectHarmsOnlyItself_I8(t *testing.T) {
	d, err := NewDecoder(reflect.TypeFor[*fixture.Site](), fixture.SiteKind, false)
	if err != nil {
		t.Fatal(err)
	}
	items := []string{
		fixture.JSONSite("good", `{"replicas":1}`),
		fixture.JSONSite("corrupt", `{"replicas":"many"}`),
		`{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":5}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"stray","namespace":"prod","resourceVersion":"7"}}`,
		fixture.JSONSite("last", `{"replicas":2}`),
	}
	body := `{"kind":"SiteList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
	page, err := d.page(ContentJSON, []byte(body))
	if err != nil {
		t.Fatalf("one bad object fails the list: %v", err)
	}
	var good, bad []string
	for _, item := range page.Items {
		if item.Err != nil {
			bad = append(bad, item.Key.String()+" "+item.ResourceVersion)
		} else {
			good = append(good, item.Key.Name)
		}
	}
	if got, want := fmt.Sprint(good, bad, page.Unreadable), "[good last] [prod/corrupt 7 prod/stray 7] 1"; got != want {
		t.Errorf("got %s, want %s: decoded, known by metadata alone, and without a name", got, want)
	}
	for _, item := range items {
		frames, err := stream(d, fixture.Peer{Media: ContentJSON}, strings.NewReader(`{"type":"MODIFIED","object":`+item+"}\n"))
		if err != io.EOF || len(frames) != 1 {
			t.Errorf("watch: got %d frames and %v, want 1 and EOF: one bad object ends the stream", len(frames), err)
		}
	}
}

func TestDecode_BadProtobufObjectKeepsItsName_I8(t *testing.T) {
	s := fixture.TestScheme()
	d, _ := NewDecoder(reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "corrupt", Namespace: "prod", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}}}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	item := d.protobufItem(append(raw, 0x12, 0x02, 0x0a, 0x7f), decodelimit.Alone()) // a truncated spec
	if item.Err == nil || item.Key != (kube.Key{Namespace: "prod", Name: "corrupt"}) || item.UID != "u" || item.ResourceVersion != "7" {
		t.Errorf("got %+v, want prod/corrupt at 7 with an error", item)
	}
	if item := d.protobufItem([]byte{0x0a, 0x7f}, decodelimit.Alone()); !IsUnreadable(item) {
		t.Errorf("got %+v, want an item without a name", item)
	}
	frame := fixture.ProtobufPeer(s).Frame(t, listwatch.FrameAdded, &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: pod.ObjectMeta})
	frames, err := stream(d, fixture.ProtobufPeer(s), bytes.NewReader(frame))
	if err != io.EOF || len(frames) != 1 || frames[0].Item.Err == nil || frames[0].Item.Key.Name != "corrupt" {
		t.Errorf("got %+v and %v, want a Secret among Pods known by name and error", frames, err)
	}
}

// An object of another kind in a watch is an error with that kind's name.
func TestDecode_AnotherKindInAFrameIsNoObject_I8(t *testing.T) {
	d, _ := NewDecoder(reflect.TypeFor[*fixture.Site](), fixture.SiteKind, false)
	for name, tc := range map[string]struct{ object, want string }{
		"a Table":        {`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"rows":[]}`, `"Table"`},
		"another object": {`{"kind":"Page","apiVersion":"web.example.com/v1","metadata":{"name":"a","namespace":"prod","resourceVersion":"7"}}`, `"Page"`},
	} {
		frame, err := d.frame(false, []byte(`{"type":"ADDED","object":`+tc.object+"}"))
		if err != nil || frame.Item.Object != nil || frame.Item.Err == nil || !strings.Contains(frame.Item.Err.Error(), tc.want) {
			t.Errorf("%s: got %+v and %v, want an item with an error that names %s", name, frame.Item, err, tc.want)
		}
	}
}

// panicky panics on some JSON, as a custom UnmarshalJSON may.
type panicky struct{ fixture.Site }

func (p *panicky) UnmarshalJSON([]byte) error { panic("mine") }

func TestDecode_PanicOfATypeIsTheItemsError_I8(t *testing.T) {
	d, _ := NewDecoder(reflect.TypeFor[*panicky](), fixture.SiteKind, false)
	item := d.jsonItem([]byte(fixture.JSONSite("a", "{}")), false, decodelimit.Alone())
	if item.Err == nil || item.Key.Name != "a" {
		t.Errorf("got %+v, want a's error", item)
	}
}

func TestDecode_OddForms(t *testing.T) {
	d, _ := NewDecoder(reflect.TypeFor[*fixture.Site](), fixture.SiteKind, false)
	pretty := func(s string) string {
		var out bytes.Buffer
		if err := json.Indent(&out, []byte(s), "", "  "); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	a := fixture.JSONSite("a", `{"content":"}]\\\"{"}`)
	for name, text := range map[string]string{
		"compact":          `{"type":"ADDED","object":` + a + "}\n",
		"no new line":      `{"type":"ADDED","object":` + a + "}",
		"CRLF":             `{"type":"ADDED","object":` + a + "}\r\n",
		"object first":     `{"object":` + a + `,"type":"ADDED"}`,
		"pretty":           pretty(`{"type":"ADDED","object":` + a + "}"),
		"pretty, no space": pretty(`{"object":`+a+`,"type":"ADDED"}`) + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(text + text), iotest.OneByteReader(strings.NewReader(text + text))} {
				frames, err := stream(d, fixture.Peer{Media: ContentJSON}, r)
				if err != io.EOF || len(frames) != 2 {
					t.Fatalf("got %d frames and %v, want 2 and EOF", len(frames), err)
				}
				for _, f := range frames {
					if f.Type != listwatch.FrameAdded || f.Item.Err != nil || f.Item.Object.(*fixture.Site).Spec.Content != `}]\"{` {
						t.Errorf("got %+v", f.Item)
					}
				}
			}
		})
	}
}

func TestDecode_EndsOfAStream(t *testing.T) {
	d, _ := NewDecoder(reflect.TypeFor[*fixture.Site](), fixture.SiteKind, false)
	whole := `{"type":"ADDED","object":` + fixture.JSONSite("a", "{}") + "}\n"
	pd, _ := NewDecoder(reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
	pp := fixture.ProtobufPeer(fixture.TestScheme())
	pod := string(pp.Frame(t, listwatch.FrameAdded, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	for name, c := range map[string]struct {
		got func() error
		err error
	}{
		"JSON, between frames":     {func() error { _, err := stream(d, fixture.Peer{}, strings.NewReader(whole)); return err }, io.EOF},
		"JSON, inside":             {func() error { _, err := stream(d, fixture.Peer{}, strings.NewReader(whole+whole[:20])); return err }, io.ErrUnexpectedEOF},
		"protobuf, between frames": {func() error { _, err := stream(pd, pp, strings.NewReader(pod)); return err }, io.EOF},
		"protobuf, in a length":    {func() error { _, err := stream(pd, pp, strings.NewReader(pod+pod[:3])); return err }, io.ErrUnexpectedEOF},
		"protobuf, inside":         {func() error { _, err := stream(pd, pp, strings.NewReader(pod+pod[:9])); return err }, io.ErrUnexpectedEOF},
	} {
		if err := c.got(); !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, want %v", name, err, c.err)
		}
	}
}

func TestDecode_LyingLengthAllocatesNothing(t *testing.T) {
	lie := append([]byte{0x07, 0xff, 0xff, 0xff}, "short"...) // announces 128 MiB minus one
	f := encoding.NewFrameReader(bytes.NewReader(lie), true, encoding.MaxFrame)
	if _, err := f.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want an unexpected EOF", err)
	}
	if cap(f.Buf) > 4*encoding.SmallBuffer {
		t.Errorf("the buffer has %d bytes after %d were read: the announced length was believed", cap(f.Buf), len(lie))
	}
	f = encoding.NewFrameReader(bytes.NewReader([]byte{0xff, 0, 0, 0, 1, 2, 3}), true, encoding.MaxFrame)
	if _, err := f.Next(); !isTooLarge(err) {
		t.Errorf("got %v, want a TooLargeError", err)
	}
	endless := io.MultiReader(strings.NewReader(`{"type":"ADDED","object":{"a":"`), &repeat{'x'})
	if _, err := encoding.NewFrameReader(endless, false, 1<<20).Next(); !isTooLarge(err) {
		t.Errorf("got %v, want a TooLargeError", err)
	}
	if _, err := encoding.ReadBody(&repeat{'x'}, 1<<20, 0); !isTooLarge(err) {
		t.Errorf("got %v, want a TooLargeError", err)
	}
}

func isTooLarge(err error) bool { _, ok := errors.AsType[*kube.TooLargeError](err); return ok }

type repeat struct{ c byte }

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.c
	}
	return len(p), nil
}

func TestDecode_Bookmark(t *testing.T) {
	s := fixture.TestScheme()
	mark := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "42", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	d, _ := NewDecoder(reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
	for _, p := range []fixture.Peer{fixture.ProtobufPeer(s), fixture.JSONPeer(s)} {
		frames, err := stream(d, p, bytes.NewReader(p.Frame(t, listwatch.FrameBookmark, mark)))
		if err != io.EOF || len(frames) != 1 || frames[0].Type != listwatch.FrameBookmark || frames[0].Item.ResourceVersion != "42" || !frames[0].InitialEventsEnd {
			t.Errorf("%s: got %+v and %v, want the bookmark at 42 that ends the initial events", p.Media, frames, err)
		}
	}
}

func decoderOf[T kube.Object](t testing.TB, kind schema.GroupVersionKind) *Decoder {
	t.Helper()
	d, err := NewDecoder(reflect.TypeFor[T](), kind, false)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Each representation is decoded from what servers send for it, separately,
// with its real kind.
func TestRepresentation_Decoding(t *testing.T) {
	s := fixture.TestScheme()
	pod := fixture.SeedPod("a")
	meta := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: pod.ObjectMeta}
	listMeta := metav1.ListMeta{ResourceVersion: "9"}
	full := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: listMeta, Items: []corev1.Pod{*pod}}
	full.Items[0].TypeMeta = metav1.TypeMeta{}
	alone := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: listMeta, Items: []metav1.PartialObjectMetadata{*meta}}
	metav1.AddToGroupVersion(s, metav1.SchemeGroupVersion)
	if err := metav1.AddMetaToScheme(s); err != nil {
		t.Fatal(err)
	}
	want := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: *pod.ObjectMeta.DeepCopy()}
	want.ManagedFields = nil

	d := decoderOf[fixture.Partial](t, fixture.PodKind)
	for _, p := range []fixture.Peer{fixture.ProtobufPeer(s), fixture.JSONPeer(s)} {
		for name, bytes := range map[string][]byte{"in full": p.Encode(t, full), "alone": p.Encode(t, alone)} {
			page, err := d.page(p.Media, bytes)
			if err != nil || len(page.Items) != 1 || page.ResourceVersion != "9" {
				t.Fatalf("%s list %s: got %d items and %v, want 1", p.Media, name, len(page.Items), err)
			}
			same(t, page.Items[0], want)
		}
		for name, bytes := range map[string][]byte{"in full": p.Frame(t, listwatch.FrameAdded, pod), "alone": p.Frame(t, listwatch.FrameAdded, meta)} {
			frames, _ := stream(d, p, strings.NewReader(string(bytes)))
			if len(frames) != 1 {
				t.Fatalf("%s watch %s: got %d frames, want 1", p.Media, name, len(frames))
			}
			same(t, frames[0].Item, want)
		}
	}

	// A list of a built-in kind omits the kind of its items.
	page, err := decoderOf[fixture.Loose](t, fixture.PodKind).page(ContentJSON, fixture.JSONPeer(s).Encode(t, full))
	if err != nil || len(page.Items) != 1 || page.Items[0].Err != nil {
		t.Fatalf("unstructured list: got %+v and %v", page, err)
	}
	got := page.Items[0].Object.(fixture.Loose)
	if got.GetKind() != "Pod" || got.GetAPIVersion() != "v1" {
		t.Errorf("got %s of %s, want Pod of v1", got.GetKind(), got.GetAPIVersion())
	}
	if _, found := got.Object["metadata"].(map[string]any)["managedFields"]; found {
		t.Error("managedFields are left, perhaps as null")
	}
}

// An object of another kind, or invalid data, is quarantined in every form.
func TestRepresentation_BadObjectHarmsOnlyItself_I8(t *testing.T) {
	items := []string{
		fixture.JSONSite("good", `{"replicas":9007199254740993,"share":0.5}`),
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"stray","namespace":"prod","resourceVersion":"7"}}`,
		`{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":"cut","namespace":"prod"},"spec":{"a":tru}}`,
		`{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":5}}`,
		`null`,
		`[]`,
	}
	body := `{"kind":"SiteList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
	page, err := decoderOf[fixture.Loose](t, fixture.SiteKind).page(ContentJSON, []byte(body))
	if err != nil {
		t.Fatalf("one bad object fails the list: %v", err)
	}
	var report []string
	for _, item := range page.Items {
		report = append(report, fmt.Sprint(item.Key.Name, " ", item.Err != nil))
	}
	if got, want := fmt.Sprint(report, page.Unreadable), "[good false stray true cut true] 3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	spec := page.Items[0].Object.(fixture.Loose).Object["spec"].(map[string]any)
	if spec["replicas"] != int64(9007199254740993) || spec["share"] != 0.5 {
		t.Errorf("got %#v, want the integer as it was sent, and the fraction", spec)
	}
}

// An undecodable object still has its metadata, if that is decodable.
func TestRepresentation_MetadataOfWhatCannotBeDecoded_I8(t *testing.T) {
	raw := `{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":"p","resourceVersion":"7","labels":%s,"managedFields":[{"manager":"m"}]},"spec":{"replicas":"many"}}`
	d := decoderOf[*fixture.Site](t, fixture.SiteKind)
	item := d.jsonItem(fmt.Appendf(nil, raw, `{"a":"b"}`), false, decodelimit.Alone())
	if item.Err == nil || item.Metadata == nil || item.Metadata.Labels["a"] != "b" || item.Metadata.Kind != "Site" || item.Metadata.ManagedFields != nil {
		t.Errorf("got %+v, want an error and the metadata of a Site", item)
	}
	if item := d.jsonItem(fmt.Appendf(nil, raw, `[1]`), false, decodelimit.Alone()); item.Err == nil || item.Key.Name != "p" || item.Metadata != nil {
		t.Errorf("got %+v, want an error, the name, and no half metadata", item)
	}
	pod, err := (&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	bad := decoderOf[*corev1.Pod](t, fixture.PodKind).protobufItem(append(pod, 0x12, 0x02, 0x0a, 0x7f), decodelimit.Alone())
	if bad.Err == nil || bad.Metadata == nil || bad.Metadata.Labels["a"] != "b" || bad.Metadata.Kind != "Pod" {
		t.Errorf("got %+v, want an error and the metadata of a Pod", bad)
	}
	if stray := d.jsonItem([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"stray"}}`), false, decodelimit.Alone()); stray.Metadata != nil {
		t.Error("an object of another kind passes for one of this kind by its metadata")
	}
}

// counts is a decoder that counts pages.
type counts[T kube.Object] struct{ d *Decoder }

func (c counts[T]) count(text string) (int, error) {
	p, err := c.d.page(ContentJSON, []byte(text))
	return len(p.Items), err
}

// A list of another kind is not a list, even if empty: it would delete
// everything.
func TestDecode_ListOfAnotherKindIsRefused_B7(t *testing.T) {
	builtIn, custom, metadata := decoderOf[*corev1.ConfigMap](t, fixture.ConfigMapKind), decoderOf[*fixture.Site](t, fixture.SiteKind), decoderOf[fixture.Partial](t, fixture.SiteKind)
	const empty = `"metadata":{"resourceVersion":"9"},"items":[]}`
	ours := `"metadata":{"resourceVersion":"9"},"items":[` + fixture.JSONSite("a", "{}") + `]}`
	theirs := `"metadata":{"resourceVersion":"9"},"items":[` + fixture.JSONSite("a", "{}") + `,{"apiVersion":"example.com/v1","kind":"Page","metadata":{"name":"b"}}]}`
	for _, c := range []struct {
		name string
		d    interface {
			count(text string) (int, error)
		}
		text string
		want int // -1: refused
	}{
		{"its own", counts[*corev1.ConfigMap]{builtIn}, `{"apiVersion":"v1","kind":"ConfigMapList",` + empty, 0},
		{"another kind of the group", counts[*corev1.ConfigMap]{builtIn}, `{"apiVersion":"v1","kind":"PodList",` + empty, -1},
		{"a list of anything", counts[*corev1.ConfigMap]{builtIn}, `{"apiVersion":"v1","kind":"List",` + empty, 0},
		{"another version", counts[*corev1.ConfigMap]{builtIn}, `{"apiVersion":"v2","kind":"ConfigMapList",` + empty, -1},
		{"a custom kind's own name for it", counts[*fixture.Site]{custom}, `{"apiVersion":"example.com/v1","kind":"Sites",` + ours, 1},
		{"the same, with others in it", counts[*fixture.Site]{custom}, `{"apiVersion":"example.com/v1","kind":"Sites",` + theirs, -1},
		{"its own, with others in it", counts[*fixture.Site]{custom}, `{"apiVersion":"example.com/v1","kind":"SiteList",` + theirs, 2},
		{"of another group", counts[*fixture.Site]{custom}, `{"apiVersion":"example.org/v1","kind":"Sites",` + empty, -1},
		{"metadata alone", counts[fixture.Partial]{metadata}, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList",` + empty, 0},
		{"metadata alone, of an older API", counts[fixture.Partial]{metadata}, `{"apiVersion":"meta.k8s.io/v1beta1","kind":"PartialObjectMetadataList",` + empty, 0},
		{"metadata of another group", counts[fixture.Partial]{metadata}, `{"apiVersion":"example.org/v1","kind":"SiteList",` + empty, -1},
	} {
		n, err := c.d.count(c.text)
		if refused := err != nil; refused != (c.want < 0) || !refused && n != c.want {
			t.Errorf("%s: %d items and %v, want %d (-1: refused)", c.name, n, err, c.want)
		}
	}
}
