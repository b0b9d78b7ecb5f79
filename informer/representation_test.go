// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/kube"
)

// Misuse of a representation is an error with the function to use.
func TestRepresentation_MisuseSaysWhatToDo(t *testing.T) {
	f, _ := factoryOn(t, nil, Options{})
	none := schema.GroupVersionKind{Group: "example.com", Version: "v1"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"For of unstructured":      {For[fixture.Loose](f).Err(), "use informer.ForKind(factory, kind)"},
		"For of metadata":          {For[fixture.Partial](f).Err(), "use informer.ForMetadata(factory, kind)"},
		"ForKind, no kind":         {ForKind(f, none).Err(), "informer.ForKind of"},
		"ForKind, no version":      {ForKind(f, schema.GroupVersionKind{Kind: "Site"}).Err(), "lacks its name or version; give both"},
		"ForMetadata, no kind":     {ForMetadata(f, none).Err(), "informer.ForMetadata of"},
		"ForResource, none":        {ForResource(f, none.GroupVersion().WithResource("")).Err(), "informer.ForResource of"},
		"ForResourceMetadata":      {ForResourceMetadata(f, schema.GroupVersionResource{Resource: "sites"}).Err(), "informer.ForResourceMetadata of"},
		"ForKind, nil factory":     {ForKind(nil, fixture.SiteKind).Err(), "the factory is nil"},
		"ForResource, nil factory": {ForResource(nil, fixture.SiteKind.GroupVersion().WithResource("sites")).Err(), "the factory is nil"},
		"the factory remembers it": {f.Run(t.Context()), "informer"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}

// One kind has one informer per representation, however it is requested.
func TestRepresentation_OneInformerPerKindAndRepresentation(t *testing.T) {
	f, _ := factoryOn(t, nil, Options{})
	if first, second := ForKind(f, fixture.SiteKind), ForKind(f, fixture.SiteKind); first.core != second.core {
		t.Error("two informers of one kind")
	}
	if ForKind(f, fixture.SiteKind).core == ForKind(f, fixture.PodKind).core {
		t.Error("two kinds share an informer because they share a Go type")
	}
	pods := fixture.PodKind.GroupVersion().WithResource("pods")
	if ForResource(f, pods).core != ForKind(f, fixture.PodKind).core {
		t.Error("a resource whose kind the scheme knows has an informer of its own")
	}
	if ForResourceMetadata(f, pods).core != ForMetadata(f, fixture.PodKind).core {
		t.Error("metadata of a resource whose kind the scheme knows has an informer of its own")
	}
	if got := len(f.Snapshot()); got != 3 {
		t.Errorf("the factory has %d informers, want 3", got)
	}
}

// Only metadata is requested; a server that rejects that gets a request for
// whole objects, whose answer is used too.
func TestRepresentation_ServerThatCannotGiveMetadataAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var accepts []string
		record := func(answer http.HandlerFunc) func(http.ResponseWriter, *http.Request) {
			return func(w http.ResponseWriter, r *http.Request) {
				accepts = append(accepts, r.Header.Get("Accept"))
				answer(w, r)
			}
		}
		list := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a","namespace":"ns","resourceVersion":"3"},"data":{"k":"v"}}]}`
		s := fixture.Serve(t, record(fixture.Body(http.StatusNotAcceptable, restclient.ContentJSON, `{"kind":"Status","apiVersion":"v1","code":406,"reason":"NotAcceptable"}`)),
			record(fixture.Body(200, restclient.ContentJSON, list)), record(fixture.Watch(fixture.Hang)))
		f, _ := factoryOn(t, s, Options{PagedLists: true})
		maps := ForMetadata(f, fixture.ConfigMapKind)
		stop := runFactory(t, f)
		<-maps.Synced()
		synctest.Wait()
		stop()
		got, err := maps.Lister().Get(kube.Key{Namespace: "ns", Name: "a"})
		if err != nil || got.Kind != "ConfigMap" || got.APIVersion != "v1" || got.ResourceVersion != "3" {
			t.Errorf("got %+v and %v, want the metadata of ConfigMap ns/a", got, err)
		}
		if len(accepts) != 3 || !strings.HasPrefix(accepts[0], restclient.ContentProtobuf+";as=PartialObjectMetadataList") ||
			strings.Contains(accepts[1], "as=") || strings.Contains(accepts[2], "as=") {
			t.Errorf("got Accept %q, want the metadata first, and then, having been refused, what the server has", accepts)
		}
	})
}

// An informer of a resource obtains the kind by discovery.
func TestRepresentation_KindOfAResourceIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := `{"kind":"SiteList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[` + fixture.JSONSite("a", "{}") + `]}`
		s := fixture.Serve(t,
			fixture.Body(200, restclient.ContentJSON, `{"resources":[{"name":"webs","kind":"Site","namespaced":true},{"name":"webs/scale","kind":"Scale"}]}`),
			fixture.Body(200, restclient.ContentJSON, list), fixture.Watch(fixture.Hang))
		f, _ := factoryOn(t, s, Options{PagedLists: true})
		resource := fixture.SiteKind.GroupVersion().WithResource("webs")
		sites := ForResource(f, resource)
		stop := runFactory(t, f)
		defer stop()
		<-sites.Synced()
		got, err := sites.Lister().Get(kube.Key{Namespace: "prod", Name: "a"})
		if err != nil || got.GetKind() != "Site" || got.GetAPIVersion() != "example.com/v1" {
			t.Errorf("got %v and %v, want a Site", got, err)
		}
		if sites.Kind() != fixture.SiteKind {
			t.Errorf("got kind %s, want %s", sites.Kind(), fixture.SiteKind)
		}
		f.Observe(kube.Written{Kind: fixture.SiteKind, Effect: kube.Removed, Key: kube.Key{Namespace: "prod", Name: "a"}, UID: "u-a"})
		if got, err := sites.Lister().Get(kube.Key{Namespace: "prod", Name: "a"}); err == nil {
			t.Errorf("got %v, want nothing: an own write did not reach an informer of the resource", got)
		}
		if ForResource(f, resource).core != sites.core && ForResource(f, resource).core != ForKind(f, fixture.SiteKind).core {
			t.Error("a third informer of one kind")
		}
	})
}

// looselyOf returns obj as an unstructured object.
func looselyOf(t *testing.T, obj kube.Object, kind schema.GroupVersionKind) fixture.Loose {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u
}

// answered returns obj as the effect of a write that the server answered with data.
func answered(kind schema.GroupVersionKind, obj kube.Object, data []byte) kube.Written {
	return kube.Written{
		Kind: kind, Effect: kube.Stored, Key: kube.KeyOf(obj), UID: obj.GetUID(), Version: kube.ParseVersion(obj.GetResourceVersion()), Object: obj,
		Decode: func(into kube.Object) error {
			if u, ok := into.(fixture.Loose); ok {
				return json.Unmarshal(data, &u.Object)
			}
			return json.Unmarshal(data, into)
		},
	}
}

// A Go type lacks the fields that it does not know, so an own write of one is stored by
// other informers from the answer, and by none from the Go type.
func TestRepresentation_GoTypeOfAWriterTakesNoFieldFromOthers_R4(t *testing.T) {
	f, _ := factoryOn(t, nil, Options{})
	untyped := ForKind(f, fixture.SiteKind)
	site := &fixture.Site{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "a", UID: "u", ResourceVersion: "5"}}
	const answer = `{"apiVersion":"example.com/v1","kind":"Site","metadata":{"namespace":"prod","name":"a","uid":"u","resourceVersion":"5"},"spec":{"newer":"keep me"}}`
	f.Observe(answered(fixture.SiteKind, site, []byte(answer)))
	got, err := untyped.Lister().Get(kube.KeyOf(site))
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(answer), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Object, want) {
		t.Errorf("the cache has %v, want exactly the answer %v", got.Object, want)
	}

	w := answered(fixture.SiteKind, site, nil)
	site.ResourceVersion, w.Version = "6", 6
	w.Decode = nil
	for _, w := range []kube.Written{w, answered(fixture.SiteKind, site, []byte("not JSON"))} {
		f.Observe(w)
		if got, err := untyped.Lister().Get(kube.KeyOf(site)); !errors.As(err, new(*kube.NotSettledError)) {
			t.Errorf("got %v and %v, want a *NotSettledError: the answer is not known in the form of this informer", got, err)
		}
	}
}

// An own write in any representation is visible in all, and shares no memory
// with the writer's object.
func TestRepresentation_OwnWritesReachAll_R4(t *testing.T) {
	f, _ := factoryOn(t, nil, Options{})
	typed, untyped, metadata := For[*appsv1.Deployment](f), ForKind(f, fixture.DeploymentKind), ForMetadata(f, fixture.DeploymentKind)
	key := kube.Key{Namespace: "prod", Name: "d"}
	written := func(version string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "d", UID: "u", ResourceVersion: version, Labels: map[string]string{"v": version}, Annotations: map[string]string{"v": version}},
			Spec:       appsv1.DeploymentSpec{Paused: true},
		}
	}
	loosely := func(version string) fixture.Loose {
		return looselyOf(t, written(version), fixture.DeploymentKind)
	}
	for _, obj := range []kube.Object{written("5"), loosely("6")} {
		version := obj.GetResourceVersion()
		data, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		f.Observe(answered(fixture.DeploymentKind, obj, data))
		obj.GetLabels()["v"] = "changed by the writer"
		if u, ok := obj.(fixture.Loose); ok {
			u.Object["metadata"].(map[string]any)["labels"].(map[string]any)["v"] = "changed by the writer"
		}
		a, errA := typed.Lister().Get(key)
		b, errB := untyped.Lister().Get(key)
		c, errC := metadata.Lister().Get(key)
		if errA != nil || errB != nil || errC != nil {
			t.Fatalf("after %T: typed %v, unstructured %v, metadata %v", obj, errA, errB, errC)
		}
		for _, got := range []kube.Object{a, b, c} {
			if got.GetLabels()["v"] != version || got.GetResourceVersion() != version {
				t.Errorf("after %T: %T has labels %v at %s, want version %s as it was written", obj, got, got.GetLabels(), got.GetResourceVersion(), version)
			}
			if kind := got.GetObjectKind().GroupVersionKind(); kind != fixture.DeploymentKind {
				t.Errorf("after %T: %T is of kind %s", obj, got, kind)
			}
		}
		if paused, _, _ := unstructured.NestedBool(b.Object, "spec", "paused"); !paused || !a.Spec.Paused {
			t.Errorf("after %T: the spec is lost: %v", obj, b.Object)
		}
	}
	// Metadata alone is not enough for an object; it is read from the server.
	only := base.MetadataOf(written("7"), fixture.DeploymentKind)
	f.Observe(kube.Written{Kind: fixture.DeploymentKind, Effect: kube.Stored, Key: key, UID: "u", Version: 7, Object: only})
	if got, err := typed.Lister().Get(key); !errors.As(err, new(*kube.NotSettledError)) {
		t.Errorf("got %+v and %v, want a *NotSettledError until the rest is read", got, err)
	}
	if got, err := metadata.Lister().Get(key); err != nil || !equality.Semantic.DeepEqual(got, only) {
		t.Errorf("got %+v and %v, want what was written", got, err)
	}
}
