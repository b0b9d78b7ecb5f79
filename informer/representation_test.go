// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/ration"
)

type (
	partial = *metav1.PartialObjectMetadata
	loose   = *unstructured.Unstructured
)

var (
	podKind        = corev1.SchemeGroupVersion.WithKind("Pod")
	configMapKind  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

func decoderOf[T Object](t testing.TB, kind schema.GroupVersionKind) *decoder[T] {
	t.Helper()
	d, err := newDecoder[T](reflect.TypeFor[T](), kind, false)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Misuse of a representation names the function to use.
func TestRepresentation_MisuseSaysWhatToDo(t *testing.T) {
	f, _ := factoryOn(t, nil, Options{})
	none := schema.GroupVersionKind{Group: "example.com", Version: "v1"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"For of unstructured":      {For[loose](f).Err(), "use informer.ForKind(factory, kind)"},
		"For of metadata":          {For[partial](f).Err(), "use informer.ForMetadata(factory, kind)"},
		"ForKind, no kind":         {ForKind(f, none).Err(), "informer.ForKind of"},
		"ForKind, no version":      {ForKind(f, schema.GroupVersionKind{Kind: "Site"}).Err(), "lacks its name or version; give both"},
		"ForMetadata, no kind":     {ForMetadata(f, none).Err(), "informer.ForMetadata of"},
		"ForResource, none":        {ForResource(f, none.GroupVersion().WithResource("")).Err(), "informer.ForResource of"},
		"ForResourceMetadata":      {ForResourceMetadata(f, schema.GroupVersionResource{Resource: "sites"}).Err(), "informer.ForResourceMetadata of"},
		"ForKind, nil factory":     {ForKind(nil, siteKind).Err(), "the factory is nil"},
		"ForResource, nil factory": {ForResource(nil, siteKind.GroupVersion().WithResource("sites")).Err(), "the factory is nil"},
		"the factory remembers it": {f.Run(t.Context()), "informer"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}

// One kind has one informer per representation, whoever asks by whichever name.
func TestRepresentation_OneInformerPerKindAndRepresentation(t *testing.T) {
	f, _ := factoryOn(t, nil, Options{})
	if first, second := ForKind(f, siteKind), ForKind(f, siteKind); first.core != second.core {
		t.Error("two informers of one kind")
	}
	if ForKind(f, siteKind).core == ForKind(f, podKind).core {
		t.Error("two kinds share an informer because they share a Go type")
	}
	pods := podKind.GroupVersion().WithResource("pods")
	if ForResource(f, pods).core != ForKind(f, podKind).core {
		t.Error("a resource whose kind the scheme knows has an informer of its own")
	}
	if ForResourceMetadata(f, pods).core != ForMetadata(f, podKind).core {
		t.Error("metadata of a resource whose kind the scheme knows has an informer of its own")
	}
	if got := len(f.Snapshot()); got != 3 {
		t.Errorf("the factory has %d informers, want 3", got)
	}
}

// Each decodes what servers send for it, alone, and gives it its real kind.
func TestRepresentation_Decoding(t *testing.T) {
	s := testScheme()
	pod := seedPod("a")
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

	d := decoderOf[partial](t, podKind)
	for _, p := range []peer{protobufPeer(s), jsonPeer(s)} {
		for name, bytes := range map[string][]byte{"in full": p.encode(t, full), "alone": p.encode(t, alone)} {
			page, err := d.page(p.media, bytes)
			if err != nil || len(page.Items) != 1 || page.ResourceVersion != "9" {
				t.Fatalf("%s list %s: got %d items and %v, want 1", p.media, name, len(page.Items), err)
			}
			same(t, page.Items[0], want)
		}
		for name, bytes := range map[string][]byte{"in full": p.frame(t, FrameAdded, pod), "alone": p.frame(t, FrameAdded, meta)} {
			frames, _ := stream(d, p, strings.NewReader(string(bytes)))
			if len(frames) != 1 {
				t.Fatalf("%s watch %s: got %d frames, want 1", p.media, name, len(frames))
			}
			same(t, frames[0].Item, want)
		}
	}

	// A list of a built-in kind leaves out what kind its items are.
	page, err := decoderOf[loose](t, podKind).page(contentJSON, jsonPeer(s).encode(t, full))
	if err != nil || len(page.Items) != 1 || page.Items[0].Err != nil {
		t.Fatalf("unstructured list: got %+v and %v", page, err)
	}
	got := page.Items[0].Object
	if got.GetKind() != "Pod" || got.GetAPIVersion() != "v1" {
		t.Errorf("got %s of %s, want Pod of v1", got.GetKind(), got.GetAPIVersion())
	}
	if _, found := got.Object["metadata"].(map[string]any)["managedFields"]; found {
		t.Error("managedFields are left, perhaps as null")
	}
}

// What is of another kind, or no object at all, is quarantined as in any form.
func TestRepresentation_BadObjectHarmsOnlyItself_I8(t *testing.T) {
	items := []string{
		jsonSite("good", `{"replicas":9007199254740993,"share":0.5}`),
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"stray","namespace":"prod","resourceVersion":"7"}}`,
		`{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":"cut","namespace":"prod"},"spec":{"a":tru}}`,
		`{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":5}}`,
		`null`,
		`[]`,
	}
	body := `{"kind":"SiteList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
	page, err := decoderOf[loose](t, siteKind).page(contentJSON, []byte(body))
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
	spec := page.Items[0].Object.Object["spec"].(map[string]any)
	if spec["replicas"] != int64(9007199254740993) || spec["share"] != 0.5 {
		t.Errorf("got %#v, want the integer as it was sent, and the fraction", spec)
	}
}

// What cannot be decoded as its type still has its metadata, where that can.
func TestRepresentation_MetadataOfWhatCannotBeDecoded_I8(t *testing.T) {
	raw := `{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":"p","resourceVersion":"7","labels":%s,"managedFields":[{"manager":"m"}]},"spec":{"replicas":"many"}}`
	d := decoderOf[*Site](t, siteKind)
	item := d.jsonItem(fmt.Appendf(nil, raw, `{"a":"b"}`), false, ration.Alone())
	if item.Err == nil || item.Metadata == nil || item.Metadata.Labels["a"] != "b" || item.Metadata.Kind != "Site" || item.Metadata.ManagedFields != nil {
		t.Errorf("got %+v, want an error and the metadata of a Site", item)
	}
	if item := d.jsonItem(fmt.Appendf(nil, raw, `[1]`), false, ration.Alone()); item.Err == nil || item.Key.Name != "p" || item.Metadata != nil {
		t.Errorf("got %+v, want an error, the name, and no half metadata", item)
	}
	pod, err := (&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	bad := decoderOf[*corev1.Pod](t, podKind).protobufItem(append(pod, 0x12, 0x02, 0x0a, 0x7f), ration.Alone())
	if bad.Err == nil || bad.Metadata == nil || bad.Metadata.Labels["a"] != "b" || bad.Metadata.Kind != "Pod" {
		t.Errorf("got %+v, want an error and the metadata of a Pod", bad)
	}
	if stray := d.jsonItem([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"stray"}}`), false, ration.Alone()); stray.Metadata != nil {
		t.Error("an object of another kind passes for one of this kind by its metadata")
	}
}

// The server is asked for the metadata alone; what refuses that is asked for
// all, and its answer read as well.
func TestRepresentation_ServerThatCannotGiveMetadataAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var accepts []string
		note := func(answer http.HandlerFunc) func(http.ResponseWriter, *http.Request) {
			return func(w http.ResponseWriter, r *http.Request) {
				accepts = append(accepts, r.Header.Get("Accept"))
				answer(w, r)
			}
		}
		list := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a","namespace":"ns","resourceVersion":"3"},"data":{"k":"v"}}]}`
		s := serve(t, note(body(http.StatusNotAcceptable, contentJSON, `{"kind":"Status","apiVersion":"v1","code":406,"reason":"NotAcceptable"}`)),
			note(body(200, contentJSON, list)), note(watch(hang)))
		f, _ := factoryOn(t, s, Options{PagedLists: true})
		maps := ForMetadata(f, configMapKind)
		stop := runFactory(t, f)
		<-maps.Synced()
		synctest.Wait()
		stop()
		got, err := maps.Lister().Get(Key{Namespace: "ns", Name: "a"})
		if err != nil || got.Kind != "ConfigMap" || got.APIVersion != "v1" || got.ResourceVersion != "3" {
			t.Errorf("got %+v and %v, want the metadata of ConfigMap ns/a", got, err)
		}
		if len(accepts) != 3 || !strings.HasPrefix(accepts[0], contentProtobuf+";as=PartialObjectMetadataList") ||
			strings.Contains(accepts[1], "as=") || strings.Contains(accepts[2], "as=") {
			t.Errorf("got Accept %q, want the metadata first, and then, having been refused, what the server has", accepts)
		}
	})
}

// An informer of a resource learns the kind by discovery.
func TestRepresentation_KindOfAResourceIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := `{"kind":"SiteList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[` + jsonSite("a", "{}") + `]}`
		s := serve(t,
			body(200, contentJSON, `{"resources":[{"name":"webs","kind":"Site","namespaced":true},{"name":"webs/scale","kind":"Scale"}]}`),
			body(200, contentJSON, list), watch(hang))
		f, _ := factoryOn(t, s, Options{PagedLists: true})
		resource := siteKind.GroupVersion().WithResource("webs")
		sites := ForResource(f, resource)
		stop := runFactory(t, f)
		defer stop()
		<-sites.Synced()
		got, err := sites.Lister().Get(Key{Namespace: "prod", Name: "a"})
		if err != nil || got.GetKind() != "Site" || got.GetAPIVersion() != "example.com/v1" {
			t.Errorf("got %v and %v, want a Site", got, err)
		}
		if sites.Kind() != siteKind {
			t.Errorf("got kind %s, want %s", sites.Kind(), siteKind)
		}
		f.Observe(Written{Kind: siteKind, Effect: Removed, Key: Key{Namespace: "prod", Name: "a"}, UID: "u-a"})
		if got, err := sites.Lister().Get(Key{Namespace: "prod", Name: "a"}); err == nil {
			t.Errorf("got %v, want nothing: an own write did not reach an informer of the resource", got)
		}
		if ForResource(f, resource).core != sites.core && ForResource(f, resource).core != ForKind(f, siteKind).core {
			t.Error("a third informer of one kind")
		}
	})
}

// An own write in any representation is seen in all, and shares nothing with
// the writer's object.
func TestRepresentation_OwnWritesReachAll_R4(t *testing.T) {
	f, _ := factoryOn(t, nil, Options{})
	typed, untyped, metadata := For[*appsv1.Deployment](f), ForKind(f, deploymentKind), ForMetadata(f, deploymentKind)
	key := Key{Namespace: "prod", Name: "d"}
	written := func(version string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "d", UID: "u", ResourceVersion: version, Labels: map[string]string{"v": version}, Annotations: map[string]string{"v": version}},
			Spec:       appsv1.DeploymentSpec{Paused: true},
		}
	}
	loosely := func(version string) loose {
		out, err := convertTo(unstructuredType, deploymentKind, written(version))
		if err != nil {
			t.Fatal(err)
		}
		return out.(loose)
	}
	for _, obj := range []Object{written("5"), loosely("6")} {
		version := obj.GetResourceVersion()
		f.Observe(Written{Kind: deploymentKind, Effect: Stored, Key: key, UID: "u", Version: ParseVersion(version), Object: obj})
		obj.GetLabels()["v"] = "changed by the writer"
		if u, ok := obj.(loose); ok {
			u.Object["metadata"].(map[string]any)["labels"].(map[string]any)["v"] = "changed by the writer"
		}
		a, errA := typed.Lister().Get(key)
		b, errB := untyped.Lister().Get(key)
		c, errC := metadata.Lister().Get(key)
		if errA != nil || errB != nil || errC != nil {
			t.Fatalf("after %T: typed %v, unstructured %v, metadata %v", obj, errA, errB, errC)
		}
		for _, got := range []Object{a, b, c} {
			if got.GetLabels()["v"] != version || got.GetResourceVersion() != version {
				t.Errorf("after %T: %T has labels %v at %s, want version %s as it was written", obj, got, got.GetLabels(), got.GetResourceVersion(), version)
			}
			if kind := got.GetObjectKind().GroupVersionKind(); kind != deploymentKind {
				t.Errorf("after %T: %T is of kind %s", obj, got, kind)
			}
		}
		if paused, _, _ := unstructured.NestedBool(b.Object, "spec", "paused"); !paused || !a.Spec.Paused {
			t.Errorf("after %T: the spec is lost: %v", obj, b.Object)
		}
	}
	// The metadata alone does not make an object; the watch will bring it.
	only := metadataOf(written("7"), deploymentKind)
	f.Observe(Written{Kind: deploymentKind, Effect: Stored, Key: key, UID: "u", Version: 7, Object: only})
	if got, err := typed.Lister().Get(key); err != nil || got.ResourceVersion != "6" {
		t.Errorf("got %+v and %v, want version 6 until the watch brings the rest", got, err)
	}
	if got, err := metadata.Lister().Get(key); err != nil || !equality.Semantic.DeepEqual(got, only) {
		t.Errorf("got %+v and %v, want what was written", got, err)
	}
}
