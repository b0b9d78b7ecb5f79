// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// listed answers a streaming list with only obj.
func listed(t *testing.T, kind string, obj kube.Object) fixture.Answer {
	t.Helper()
	obj.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	end := kube.Copy(obj)
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return fixture.Watch(fixture.Hang, fixture.Wire(t, listwatch.FrameAdded, obj), fixture.Wire(t, listwatch.FrameBookmark, end))
}

// refused checks that a read is a *NamespaceError with the fix in its text.
func refused(t *testing.T, what string, err error, fix string) {
	t.Helper()
	if _, ok := errors.AsType[*kube.NamespaceError](err); !ok || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), fix) {
		t.Errorf("%s: %v, want a *NamespaceError that says %q and is not taken for NotFound", what, err, fix)
	}
}

func TestLister_ReadThatNoObjectCanAnswerIsAnError_B10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "5"}}
		f, _ := factoryOn(t, fixture.Serve(t, listed(t, "Node", node)), Options{Namespaces: []string{"a"}})
		nodes := For[*corev1.Node](f)
		defer runFactory(t, f)()
		<-nodes.Synced()
		lister := nodes.Lister()

		_, err := lister.Get(kube.Key{Namespace: "a", Name: "n"})
		refused(t, "Get of a cluster-scoped kind in a namespace", err, `kind Node is cluster-scoped; leave the namespace "a" out`)
		_, err = lister.List(QueryOptions{Namespace: "a"})
		refused(t, "List of a cluster-scoped kind in a namespace", err, `kind Node is cluster-scoped; leave the namespace "a" out`)
		if _, err := lister.Get(kube.Key{Name: "n"}); err != nil {
			t.Errorf("Get without a namespace: %v", err)
		}
		if all, err := lister.List(QueryOptions{}); err != nil || len(all) != 1 {
			t.Errorf("List without a namespace gives %d and %v, want the node", len(all), err)
		}
	})
}

func TestLister_ReadOfANamespacedKindWithoutNamespaceIsAnError_B10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "n", UID: "u", ResourceVersion: "5"}}
		f, _ := factoryOn(t, fixture.Serve(t, listed(t, "ConfigMap", cm)), Options{Namespaces: []string{"a"}})
		configMaps := For[*corev1.ConfigMap](f)
		defer runFactory(t, f)()
		<-configMaps.Synced()
		lister := configMaps.Lister()

		_, err := lister.Get(kube.Key{Name: "n"})
		refused(t, "Get of a namespaced kind without namespace", err, "read ConfigMap n: kind ConfigMap is namespaced; set the namespace of the key")
		_, err = lister.List(QueryOptions{Namespace: "b"})
		if _, ok := errors.AsType[*kube.OutOfScopeError](err); !ok || !strings.Contains(err.Error(), `read ConfigMap in "b"`) {
			t.Errorf("List of a namespace that is not watched: %v, want an *OutOfScopeError", err)
		}
		if all, err := lister.List(QueryOptions{Namespace: "a"}); err != nil || len(all) != 1 {
			t.Errorf("List of the namespace gives %d and %v, want the ConfigMap", len(all), err)
		}
	})
}

// An informer made by New knows this too, if its ListerWatcher does.
func TestLister_InformerOfItsOwnKnowsItsScope_B10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "5"}}
		s := fixture.Serve(t, listed(t, "Node", node))
		lw, err := NewListerWatcher[*corev1.Node](&rest.Config{Host: "http://memory", Transport: &http.Transport{DialContext: s.Dial}}, clientscheme.Scheme, listwatch.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		i := New(lw, corev1.SchemeGroupVersion.WithKind("Node"), Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- i.Run(ctx) }()
		<-i.Synced()
		_, err = i.Lister().Get(kube.Key{Namespace: "a", Name: "n"})
		refused(t, "Get of a cluster-scoped kind in a namespace", err, `leave the namespace "a" out`)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// A reconciler that counts children before the first list would create them
// again.
func TestLister_ReadBeforeTheFirstListIsAnError_B20(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	if err := x.AddIndex("label", byLabel); err != nil {
		t.Fatal(err)
	}
	synced := make(chan struct{})
	lister := listerOf(x, &listerView{synced: synced})
	mustApply(t, x, seenDelta("a", "u", 1, "l"))
	reads := map[string]func() ([]kube.Object, error){
		"List":                func() ([]kube.Object, error) { return lister.List(QueryOptions{}) },
		"List of an index":    func() ([]kube.Object, error) { return lister.List(QueryOptions{Index: "label", IndexValue: "l"}) },
		"List of a namespace": func() ([]kube.Object, error) { return lister.List(QueryOptions{Namespace: "ns"}) },
		"ByIndex": func() ([]kube.Object, error) {
			objects, err := lister.ByIndex("label", "l")
			if err != nil {
				return nil, err
			}
			return slices.Collect(objects), nil
		},
	}
	for what, read := range reads {
		if objects, err := read(); !isNotSynced(err) {
			t.Errorf("%s before the first list gives %d objects and %v, want a *NotSyncedError", what, len(objects), err)
		}
	}
	if known, err := lister.List(QueryOptions{Unsynced: true}); err != nil || len(known) != 1 {
		t.Errorf("List of what is known so far gives %d objects and %v, want the one", len(known), err)
	}
	close(synced)
	for what, read := range reads {
		if objects, err := read(); err != nil || len(objects) != 1 {
			t.Errorf("%s after the first list gives %d objects and %v, want the one", what, len(objects), err)
		}
	}
	if _, err := (Lister[kube.Object]{}).List(QueryOptions{}); !isNotSynced(err) {
		t.Errorf("List of an empty Lister gives %v, want a *NotSyncedError", err)
	}
}

func isNotSynced(err error) bool { _, ok := errors.AsType[*kube.NotSyncedError](err); return ok }
