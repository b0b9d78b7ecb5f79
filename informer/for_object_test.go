// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/kube"
)

// sitesFactory returns a factory of the built-in kinds and Site. It sends
// nothing.
func sitesFactory(t *testing.T) *SharedInformerFactory {
	t.Helper()
	f, err := NewSharedInformerFactory(&rest.Config{Host: "http://memory", Transport: &http.Transport{}}, fixture.TestScheme(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// exampleOf returns an empty object with its kind.
func exampleOf(obj kube.Object, kind schema.GroupVersionKind) kube.Object {
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj
}

// ForObject returns the informer of the example's type, and shows own writes
// made in any representation.
func TestForObject_OwnWritesAreShown_B11(t *testing.T) {
	f := sitesFactory(t)
	named := metav1.ObjectMeta{Namespace: "prod", Name: "d", UID: "u"}
	pod, site := &corev1.Pod{ObjectMeta: named}, &fixture.Site{ObjectMeta: named}
	version := kube.Version(0)
	for _, c := range []struct {
		name string
		like kube.Object
		same *core // the informer of the type itself
		obj  kube.Object
	}{
		{"typed, built in", &corev1.Pod{}, For[*corev1.Pod](f).core, pod},
		{"typed, custom", &fixture.Site{}, For[*fixture.Site](f).core, site},
		{"unstructured", exampleOf(&unstructured.Unstructured{}, fixture.SiteKind), ForKind(f, fixture.SiteKind).core, site},
		{"metadata", exampleOf(&metav1.PartialObjectMetadata{}, fixture.PodKind), ForMetadata(f, fixture.PodKind).core, pod},
	} {
		i := ForObject(f, c.like)
		if err := i.Err(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if i.core != c.same {
			t.Errorf("%s: it has an informer of its own, want the one that the type has anyway", c.name)
		}
		key := kube.KeyOf(c.obj)
		loosely := looselyOf(t, c.obj, c.same.kind)
		for _, obj := range []kube.Object{c.obj, loosely} {
			version++
			obj.SetResourceVersion(version.String())
			data, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			f.Observe(answered(i.Kind(), obj, data))
			got, err := i.Lister().Get(key)
			if err != nil || got.GetResourceVersion() != version.String() {
				t.Fatalf("%s: after an own write of a %T Get gives %v and %v, want version %s", c.name, obj, got, err, version)
			}
			if reflect.TypeOf(got) != reflect.TypeOf(c.like) {
				t.Errorf("%s: the Lister gives a %T, want the type of the example", c.name, got)
			}
		}
	}
}

// An object made by the scheme is an example, and the watch's objects have its
// type.
func TestForObject_TakesWhatTheSchemeMakesOfAKind_B11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "c", UID: "u", ResourceVersion: "5"}, Data: map[string]string{"k": "v"}}
		f, _ := factoryOn(t, fixture.Serve(t, listed(t, "ConfigMap", cm)), Options{})
		like, err := f.Scheme().New(fixture.ConfigMapKind)
		if err != nil {
			t.Fatal(err)
		}
		i := ForObject(f, like)
		added := make(chan kube.Object, 1)
		if _, err := i.AddHandler(func(e kube.Event[kube.Object]) { added <- e.New }, HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := i.AddIndex("k", func(obj kube.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["k"]} }); err != nil {
			t.Fatal(err)
		}
		defer runFactory(t, f)()
		<-i.Synced()
		if got, ok := (<-added).(*corev1.ConfigMap); !ok || got.Data["k"] != "v" {
			t.Errorf("the handler was given %v, want the ConfigMap", got)
		}
		if keys, err := i.Lister().List(QueryOptions{Index: "k", IndexValue: "v"}); err != nil || len(keys) != 1 {
			t.Errorf("the index has %v and %v, want the ConfigMap", keys, err)
		}
	})
}

// notMetadata is an API type without metadata.
type notMetadata struct{ metav1.TypeMeta }

func (o *notMetadata) DeepCopyObject() runtime.Object { return &notMetadata{o.TypeMeta} }

func TestForObject_MisuseSaysWhatToDo_B11(t *testing.T) {
	f := sitesFactory(t)
	f.scheme.AddKnownTypeWithName(fixture.SiteKind.GroupVersion().WithKind("OtherSite"), &fixture.Site{})
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nil":                       {ForObject(f, nil).Err(), "give a pointer to an API type that has metadata"},
		"nil pointer":               {ForObject(f, (*corev1.Pod)(nil)).Err(), "give a pointer to an API type that has metadata"},
		"no metadata":               {ForObject(f, &notMetadata{}).Err(), "give a pointer to an API type that has metadata"},
		"unstructured, no kind":     {ForObject(f, &unstructured.Unstructured{}).Err(), "set apiVersion and kind of the object"},
		"several kinds":             {ForObject(f, &fixture.Site{}).Err(), "is registered for 2 kinds in the scheme; set apiVersion and kind"},
		"several kinds, one named":  {ForObject(f, exampleOf(&fixture.Site{}, fixture.SiteKind)).Err(), ""},
		"nil factory":               {ForObject(nil, &corev1.Pod{}).Err(), "the factory is nil"},
		"For of an interface":       {For[kube.Object](f).Err(), "informer.ForObject"},
		"New of an interface":       {New[kube.Object](nil, fixture.PodKind, Options{}).Run(t.Context()), "informer.NewForObject"},
		"NewForObject, nil example": {NewForObject(nil, nil, fixture.PodKind, Options{}).Run(t.Context()), "informer.NewForObject"},
	} {
		if c.want == "" && c.err != nil || c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
	none, err := NewSharedInformerFactory(&rest.Config{Host: "http://memory"}, runtime.NewScheme(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ForObject(none, &corev1.Pod{}).Err(); err == nil || !strings.Contains(err.Error(), "AddToScheme") {
		t.Errorf("a type that is not in the scheme: %v, want an error that names AddToScheme", err)
	}
}
