// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// A retried transform receives what the server sent, in either encoding and
// from lists and watches, although it has modified the previous object.
func TestInformer_TransformIsGivenWhatTheServerSent_B9(t *testing.T) {
	in := func(name, version string) *corev1.ConfigMap {
		cm := fixture.ConfigMap(name, version)
		cm.Data = map[string]string{"k": "as sent"}
		return cm
	}
	const data = `,"data":{"k":"as sent"}`
	for name, answers := range map[string][]fixture.Answer{
		"protobuf": {fixture.Watch(fixture.Hang, fixture.Wire(t, listwatch.FrameAdded, in("a", "5")), fixture.WireBookmark(t, "6", true), fixture.Wire(t, listwatch.FrameAdded, in("b", "7")))},
		"JSON":     {jsonWatch(jsonEvent("ADDED", "v1", "ConfigMap", "a", "5", data), jsonEnd, jsonEvent("ADDED", "v1", "ConfigMap", "b", "7", data))},
		"pages":    {fixture.Page(t, "6", "", in("a", "5")), fixture.Watch(fixture.Hang, fixture.Wire(t, listwatch.FrameAdded, in("b", "7")))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, _ := factoryOn(t, fixture.Serve(t, answers...), Options{PagedLists: name == "pages"})
				i := For[*corev1.ConfigMap](f)
				var mu sync.Mutex
				seen := map[string]int{}
				err := i.SetTransform(func(cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
					mu.Lock()
					defer mu.Unlock()
					seen[cm.Name]++
					if cm.Data["k"] != "as sent" || cm.Kind != "ConfigMap" || len(cm.ManagedFields) != 0 {
						t.Errorf("call %d for %s has %v, want what the server sent", seen[cm.Name], cm.Name, cm)
					}
					cm.Data = nil
					if seen[cm.Name] <= 3 {
						return cm, errors.New("not yet")
					}
					return cm, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				defer runFactory(t, f)()
				<-i.Synced()
				time.Sleep(time.Minute)
				if got, want := keysOf(i), "prod/a@5 prod/b@7"; got != want {
					t.Errorf("the Lister has %q, want %q", got, want)
				}
			})
		})
	}
}

// A retry decodes the server's bytes again, so that no object is copied before
// the transform is called.
func TestTransform_NeedsNoCopyOfWhatAServerSent_B9(t *testing.T) {
	f, err := NewSharedInformerFactory(&rest.Config{Host: "http://127.0.0.1:1"}, clientscheme.Scheme, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lw, err := restclient.NewListerWatcher(reflect.TypeFor[*corev1.ConfigMap](), f.resolver, restclient.Target{Kind: fixture.ConfigMapKind}, listwatch.Scope{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if reflector.Again(lw) == nil {
		t.Error("a ListerWatcher over HTTP cannot decode an item again")
	}
}
