// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/bridge/clientgo/byresource"
	"github.com/flyball-dev/flyball/informer"
)

var widgetResource = widgetKind.GroupVersion().WithResource("widgets")

// managed is a ConfigMap that somebody's server-side apply owns.
func managed(name string) cmap {
	obj := configMap(name, "1")
	obj.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply}}
	return obj
}

func TestClientGo_ManagedFieldsStayForAnAdapter_G5(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(managed("a"))
		maps := informer.For[cmap](w.factory)
		stripped := informer.ForMetadata(w.factory, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		adapted := clientgo.NewSharedIndexInformer(maps, clientgo.Options{})
		start(w)
		w.Store(managed("b"))
		w.writeOwn(maps, "b", "2")
		for _, name := range []string{"ns/a", "ns/b"} {
			obj, exists, err := adapted.GetStore().GetByKey(name)
			if err != nil || !exists || len(obj.(cmap).ManagedFields) != 1 {
				t.Errorf("%s: %v, %v, %v; code that extracts an apply configuration needs managedFields", name, obj, exists, err)
			}
		}
		synctest.Wait()
		for obj := range stripped.Lister().All() {
			if len(obj.ManagedFields) != 0 {
				t.Errorf("%s has managedFields in an informer that nobody adapted", obj.Name)
			}
		}
		if err := stripped.KeepManagedFields(); err == nil {
			t.Error("managedFields can be asked for after the start, when objects are stored without them")
		}
		if err := maps.KeepManagedFields(); err != nil {
			t.Errorf("asked for again where they are kept: %v, want nothing", err)
		}
		clientgo.NewSharedIndexInformer(stripped, clientgo.Options{})
		if w.logged("has no managedFields") != 1 {
			t.Error("an adapter that came too late for managedFields says nothing")
		}
	})
}

// Metadata that asks for managedFields has a watch of its own where the watch
// of the full objects does without them.
func TestClientGo_ManagedFieldsAreNotLostByASharedWatch_G5(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(managed("a"))
		stripped := informer.For[cmap](w.factory)
		f := byresource.NewMetadata(w.factory, byresource.Options{})
		metadata := f.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps"))
		f.Start(w.ctx.Done())
		start(w)
		obj, err := metadata.Lister().ByNamespace("ns").Get("a")
		if err != nil || len(obj.(*metav1.PartialObjectMetadata).ManagedFields) != 1 {
			t.Errorf("got %v and %v, want managedFields", obj, err)
		}
		if full, err := stripped.Lister().Get(key("a")); err != nil || len(full.ManagedFields) != 0 {
			t.Errorf("got %v and %v in full, want no managedFields where nobody asked", full, err)
		}
	})
}

func TestClientGo_DynamicFactoryHasFlyballsInformer_G6(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		w.Store(newWidget("a", "1"))
		f := byresource.NewDynamic(w.factory, byresource.Options{})
		widget := f.ForResource(widgetResource)
		own := informer.ForResource(w.factory, widgetResource)
		var told []string
		if _, err := widget.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			told = append(told, obj.(*unstructured.Unstructured).GetName())
		}}); err != nil {
			t.Fatal(err)
		}
		f.Start(w.ctx.Done())
		start(w)
		w.Store(newWidget("b", "2"))

		if synced := f.WaitForCacheSync(w.ctx.Done()); !synced[widgetResource] {
			t.Errorf("got %v, want widgets synced", synced)
		}
		obj, err := widget.Lister().ByNamespace("ns").Get("b")
		if err != nil {
			t.Fatal(err)
		}
		if value, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "value"); value != "2" {
			t.Errorf("the lister gives %v, want what was written", obj)
		}
		if same, err := own.Lister().Get(key("b")); err != nil || same != obj {
			t.Errorf("flyball's own lister gives another object, and %v: two stores hold one resource", err)
		}
		if all, err := widget.Lister().List(labels.Everything()); err != nil || len(all) != 2 {
			t.Errorf("the lister lists %d objects and %v, want 2", len(all), err)
		}
		if _, err := widget.Lister().ByNamespace("ns").Get("c"); !apierrors.IsNotFound(err) {
			t.Errorf("an object that is not there: %v, want NotFound", err)
		}
		if len(told) != 2 {
			t.Errorf("the handler was told of %q, want a and b", told)
		}
		if n := w.lists(widgets); n != 1 {
			t.Errorf("the server was asked for %d lists of widgets, want one for both", n)
		}
	})
}

func TestClientGo_MetadataFactorySelects_G7(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		web := newWidget("a", "1")
		web.Labels = map[string]string{"app": "web"}
		w.Store(web, newWidget("b", "2"))
		f := byresource.NewMetadata(w.factory, byresource.Options{
			Namespace:        "ns",
			TweakListOptions: func(list *metav1.ListOptions) { list.LabelSelector = "app=web" },
			Transform: func(obj any) (any, error) {
				obj.(*metav1.PartialObjectMetadata).Annotations = map[string]string{"seen": "yes"}
				return obj, nil
			},
		})
		lister := f.ForResource(widgetResource).Lister()
		f.Start(w.ctx.Done())
		start(w)
		all, err := lister.List(labels.Everything())
		if err != nil || len(all) != 1 {
			t.Fatalf("the lister lists %d objects and %v, want the one that has the label", len(all), err)
		}
		got := all[0].(*metav1.PartialObjectMetadata)
		if got.Name != "a" || got.Kind != "Widget" || got.Annotations["seen"] != "yes" {
			t.Errorf("got %s %s with %v, want Widget a as the transform made it", got.Kind, got.Name, got.Annotations)
		}
		if selector := "labelSelector=app%3Dweb"; w.asked("list", selector)+w.asked("watch", selector) == 0 {
			t.Error("the server was not asked to select")
		}
	})
}
