// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

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
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/framer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/internal/ration"
)

// Site is an object as a CustomResourceDefinition has it: JSON alone.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              SiteSpec          `json:"spec"`
	Status            map[string]string `json:"status,omitempty"`
}

type SiteSpec struct {
	Content  string   `json:"content"`
	Replicas int64    `json:"replicas"`
	Hosts    []string `json:"hosts,omitempty"`
}

func (s *Site) DeepCopyObject() runtime.Object {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Site `json:"items"`
}

func (s *SiteList) DeepCopyObject() runtime.Object { out := *s; return &out }

var siteKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}

// testScheme is the built-in kinds and Site.
func testScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		panic(err)
	}
	s.AddKnownTypeWithName(siteKind, &Site{})
	s.AddKnownTypeWithName(siteKind.GroupVersion().WithKind("SiteList"), &SiteList{})
	metav1.AddToGroupVersion(s, siteKind.GroupVersion())
	return s
}

// peer encodes as the API server does, and decodes as client-go does.
type peer struct {
	object, raw runtime.Serializer
	media       string
}

func protobufPeer(s *runtime.Scheme) peer {
	return peer{protobuf.NewSerializer(s, s), protobuf.NewRawSerializer(s, s), contentProtobuf}
}

func jsonPeer(s *runtime.Scheme) peer {
	j := kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, s, s, kubejson.SerializerOptions{})
	return peer{j, j, contentJSON}
}

func (p peer) encode(t testing.TB, obj runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := p.object.Encode(obj, &out); err != nil {
		t.Fatalf("encode %T: %v", obj, err)
	}
	return out.Bytes()
}

// frame is one watch event as it is on the wire.
func (p peer) frame(t testing.TB, typ FrameType, obj runtime.Object) []byte {
	t.Helper()
	event := &metav1.WatchEvent{Type: string(typ), Object: runtime.RawExtension{Raw: p.encode(t, obj)}}
	var out bytes.Buffer
	w := io.Writer(&out)
	if p.media == contentProtobuf {
		w = framer.NewLengthDelimitedFrameWriter(&out)
	}
	if err := p.raw.Encode(event, w); err != nil {
		t.Fatalf("encode event of %T: %v", obj, err)
	}
	return out.Bytes()
}

func (p peer) decode(t testing.TB, data []byte, into runtime.Object) {
	t.Helper()
	if _, _, err := p.object.Decode(data, nil, into); err != nil {
		t.Fatalf("the peer cannot decode its own %T: %v", into, err)
	}
}

// stream decodes all frames of a stream.
func stream[T Object](d *decoder[T], p peer, src io.Reader) (frames []Frame[T], err error) {
	s := &restStream[T]{ctx: tContext, body: io.NopCloser(src), decoder: d, frames: newFrameReader(src, p.media == contentProtobuf, maxFrame)}
	for {
		f, err := s.Next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

// roundTrips decodes random objects of one kind in each form, and compares
// them with what client-go makes of the same bytes.
func roundTrips[T Object, L runtime.Object](t *testing.T, kind schema.GroupVersionKind, fill func(T), list func([]T) L, peers ...peer) {
	for _, p := range peers {
		for _, keep := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %s keepManagedFields=%v", kind.Kind, p.media, keep), func(t *testing.T) {
				d, err := newDecoder[T](reflect.TypeFor[T](), kind, keep)
				if err != nil {
					t.Fatal(err)
				}
				var wire []byte
				var all []T
				var sizes []int
				for i := range 20 {
					obj := d.empty()
					fill(obj)
					obj.SetName(fmt.Sprintf("object-%d", i))
					obj.SetResourceVersion(fmt.Sprint(i + 1))
					obj.GetObjectKind().SetGroupVersionKind(kind)
					if i%2 == 0 {
						obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "one \"quoted\" \\", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a}]":{}}}`)}, {Manager: "two"}})
					} else {
						obj.SetManagedFields(nil)
					}
					wire = append(wire, p.frame(t, FrameAdded, obj)...)
					want := d.empty()
					p.decode(t, p.encode(t, obj), want)
					if !keep {
						want.SetManagedFields(nil)
					}
					all = append(all, want)
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
				page, err := d.page(p.media, p.encode(t, l))
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

// sizedAs is how long the objects are in p's form, without the frame around them.
func sizedAs[T Object](t *testing.T, p peer, objects []T) (sizes []int) {
	for _, obj := range objects {
		size := len(p.encode(t, obj)) - 1 // the end of a line
		if p.media == contentProtobuf {
			size -= 60 // of the envelope, at most
		}
		sizes = append(sizes, size)
	}
	return sizes
}

func same[T Object](t *testing.T, got Item[T], want T) {
	t.Helper()
	if got.Err != nil {
		t.Fatalf("%s: %v", want.GetName(), got.Err)
	}
	if !equality.Semantic.DeepEqual(got.Object, want) || !reflect.DeepEqual(got.Object.GetObjectKind().GroupVersionKind(), want.GetObjectKind().GroupVersionKind()) {
		t.Fatalf("got  %+v\nwant %+v\nthe same bytes make another object than client-go makes", got.Object, want)
	}
	if got.Key != KeyOf(want) || got.UID != want.GetUID() || got.ResourceVersion != want.GetResourceVersion() {
		t.Fatalf("got identity %v %q %q of %s", got.Key, got.UID, got.ResourceVersion, KeyOf(want))
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
	s := testScheme()
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs), rand.NewSource(1), scheme.Codecs).NilChance(.3).NumElements(1, 3)
	both := []peer{protobufPeer(s), jsonPeer(s)}
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
	roundTrips(t, siteKind, func(o *Site) { filler.Fill(o) }, func(a []*Site) *SiteList {
		return &SiteList{TypeMeta: tm(siteKind), ListMeta: lm, Items: deref(a)}
	}, jsonPeer(s))
}

// jsonSite is a Site of the given name and spec.
func jsonSite(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":%q,"namespace":"prod","uid":"u-%s","resourceVersion":"7"},"spec":%s}`, name, name, spec)
}

func TestDecode_BadObjectHarmsOnlyItself_I8(t *testing.T) {
	d, err := newDecoder[*Site](reflect.TypeFor[*Site](), siteKind, false)
	if err != nil {
		t.Fatal(err)
	}
	items := []string{
		jsonSite("good", `{"replicas":1}`),
		jsonSite("poison", `{"replicas":"many"}`),
		`{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":5}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"stray","namespace":"prod","resourceVersion":"7"}}`,
		jsonSite("last", `{"replicas":2}`),
	}
	body := `{"kind":"SiteList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
	page, err := d.page(contentJSON, []byte(body))
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
	if got, want := fmt.Sprint(good, bad, page.Unreadable), "[good last] [prod/poison 7 prod/stray 7] 1"; got != want {
		t.Errorf("got %s, want %s: decoded, known by metadata alone, and without a name", got, want)
	}
	for _, item := range items {
		frames, err := stream(d, peer{media: contentJSON}, strings.NewReader(`{"type":"MODIFIED","object":`+item+"}\n"))
		if err != io.EOF || len(frames) != 1 {
			t.Errorf("watch: got %d frames and %v, want 1 and EOF: one bad object ends the stream", len(frames), err)
		}
	}
}

func TestDecode_BadProtobufObjectKeepsItsName_I8(t *testing.T) {
	s := testScheme()
	d, _ := newDecoder[*corev1.Pod](reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "poison", Namespace: "prod", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}}}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	item := d.protobufItem(append(raw, 0x12, 0x02, 0x0a, 0x7f), ration.Alone()) // a spec that ends too early
	if item.Err == nil || item.Key != (Key{Namespace: "prod", Name: "poison"}) || item.UID != "u" || item.ResourceVersion != "7" {
		t.Errorf("got %+v, want prod/poison at 7 with an error", item)
	}
	if item := d.protobufItem([]byte{0x0a, 0x7f}, ration.Alone()); !item.unreadable() {
		t.Errorf("got %+v, want an item without a name", item)
	}
	frame := protobufPeer(s).frame(t, FrameAdded, &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: pod.ObjectMeta})
	frames, err := stream(d, protobufPeer(s), bytes.NewReader(frame))
	if err != io.EOF || len(frames) != 1 || frames[0].Item.Err == nil || frames[0].Item.Key.Name != "poison" {
		t.Errorf("got %+v and %v, want a Secret among Pods known by name and error", frames, err)
	}
}

// What a watch brings of another kind is an error with that kind's name, never
// an object.
func TestDecode_AnotherKindInAFrameIsNoObject_I8(t *testing.T) {
	d, _ := newDecoder[*Site](reflect.TypeFor[*Site](), siteKind, false)
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

// panicky panics on some JSON, as a user's own UnmarshalJSON may.
type panicky struct{ Site }

func (p *panicky) UnmarshalJSON([]byte) error { panic("mine") }

func TestDecode_PanicOfATypeIsTheItemsError_I8(t *testing.T) {
	d, _ := newDecoder[*panicky](reflect.TypeFor[*panicky](), siteKind, false)
	item := d.jsonItem([]byte(jsonSite("a", "{}")), false, ration.Alone())
	if item.Err == nil || item.Key.Name != "a" {
		t.Errorf("got %+v, want a's error", item)
	}
}

func TestDecode_OddForms(t *testing.T) {
	d, _ := newDecoder[*Site](reflect.TypeFor[*Site](), siteKind, false)
	pretty := func(s string) string {
		var out bytes.Buffer
		if err := json.Indent(&out, []byte(s), "", "  "); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	a := jsonSite("a", `{"content":"}]\\\"{"}`)
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
				frames, err := stream(d, peer{media: contentJSON}, r)
				if err != io.EOF || len(frames) != 2 {
					t.Fatalf("got %d frames and %v, want 2 and EOF", len(frames), err)
				}
				for _, f := range frames {
					if f.Type != FrameAdded || f.Item.Err != nil || f.Item.Object.Spec.Content != `}]\"{` {
						t.Errorf("got %+v", f.Item)
					}
				}
			}
		})
	}
}

func TestDecode_EndsOfAStream(t *testing.T) {
	d, _ := newDecoder[*Site](reflect.TypeFor[*Site](), siteKind, false)
	whole := `{"type":"ADDED","object":` + jsonSite("a", "{}") + "}\n"
	pd, _ := newDecoder[*corev1.Pod](reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
	pp := protobufPeer(testScheme())
	pod := string(pp.frame(t, FrameAdded, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	for name, c := range map[string]struct {
		got func() error
		err error
	}{
		"JSON, between frames":     {func() error { _, err := stream(d, peer{}, strings.NewReader(whole)); return err }, io.EOF},
		"JSON, inside":             {func() error { _, err := stream(d, peer{}, strings.NewReader(whole+whole[:20])); return err }, io.ErrUnexpectedEOF},
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
	lie := append([]byte{0x07, 0xff, 0xff, 0xff}, "short"...) // 128 MiB less one are announced
	f := newFrameReader(bytes.NewReader(lie), true, maxFrame)
	if _, err := f.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want an unexpected EOF", err)
	}
	if cap(f.buf) > 4*smallBuffer {
		t.Errorf("the buffer has %d bytes after %d were read: the announced length was believed", cap(f.buf), len(lie))
	}
	f = newFrameReader(bytes.NewReader([]byte{0xff, 0, 0, 0, 1, 2, 3}), true, maxFrame)
	if _, err := f.next(); !isTooLarge(err) {
		t.Errorf("got %v, want a TooLargeError", err)
	}
	endless := io.MultiReader(strings.NewReader(`{"type":"ADDED","object":{"a":"`), &repeat{'x'})
	if _, err := newFrameReader(endless, false, 1<<20).next(); !isTooLarge(err) {
		t.Errorf("got %v, want a TooLargeError", err)
	}
	if _, err := readBody(&repeat{'x'}, 1<<20, 0); !isTooLarge(err) {
		t.Errorf("got %v, want a TooLargeError", err)
	}
}

func isTooLarge(err error) bool { _, ok := errors.AsType[*TooLargeError](err); return ok }

type repeat struct{ c byte }

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.c
	}
	return len(p), nil
}

func TestDecode_Bookmark(t *testing.T) {
	s := testScheme()
	mark := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "42", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	d, _ := newDecoder[*corev1.Pod](reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
	for _, p := range []peer{protobufPeer(s), jsonPeer(s)} {
		frames, err := stream(d, p, bytes.NewReader(p.frame(t, FrameBookmark, mark)))
		if err != io.EOF || len(frames) != 1 || frames[0].Type != FrameBookmark || frames[0].Item.ResourceVersion != "42" || !frames[0].InitialEventsEnd {
			t.Errorf("%s: got %+v and %v, want the bookmark at 42 that ends the initial events", p.media, frames, err)
		}
	}
}
