// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// A handler modifies a part that objects share. The detector names it, and objects that
// are decoded afterwards have what the server sent.
func TestInformer_ModifiedPartIsNamedAndDoesNotSpread_D2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := func(name, version string) *corev1.ConfigMap {
			cm := fixture.ConfigMap(name, version)
			cm.Data = map[string]string{"key": "as sent", "another": "as sent, too"}
			return cm
		}
		found := make(chan struct{})
		more := func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-found:
				for _, name := range []string{"d", "e", "f"} {
					_, _ = w.Write(fixture.Wire(t, listwatch.FrameAdded, with(name, "7")))
				}
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
			}
			<-r.Context().Done()
		}
		server := fixture.Serve(t, fixture.Page(t, "6", "", with("a", "1"), with("b", "2"), with("c", "3")), fixture.Watch(more))
		var once sync.Once
		var named string
		f, _ := factoryOn(t, server, Options{PagedLists: true, DetectMutations: MutationDetection{
			Rate: 0.999999999, // every object, but none is checked when it is decoded
			OnMutation: func(m Mutation) {
				once.Do(func() { named = m.String(); close(found) })
			},
		}})
		configs := For[*corev1.ConfigMap](f)
		seen := make(chan *corev1.ConfigMap, 10)
		if _, err := configs.AddHandler(func(e kube.Event[*corev1.ConfigMap]) {
			if e.New.Name == "c" {
				e.New.Data["key"] = "modified"
			}
			seen <- e.New
		}, HandlerOptions{Name: "vandal"}); err != nil {
			t.Fatal(err)
		}
		defer runFactory(t, f)()
		var b, c *corev1.ConfigMap
		for range 6 {
			switch cm := <-seen; cm.Name {
			case "b":
				b = cm
			case "c":
				c = cm
			case "d", "e", "f":
				if cm.Data["key"] != "as sent" {
					t.Errorf("%s has %q: what a handler did to a part of another object is in it", cm.Name, cm.Data["key"])
				}
			}
		}
		if reflect.ValueOf(b.Data).Pointer() != reflect.ValueOf(c.Data).Pointer() {
			t.Error("b and c do not share their data; this tests nothing")
		}
		if !strings.Contains(named, `.data["key"]`) && !strings.Contains(named, ".data.key") {
			t.Errorf("the mutation is named as %q, want the field", named)
		}
	})
}

// A transform keeps its object, and code modifies it later, with a part that it shares by then. The
// detector names it, the store is as the server sent it, and so is what is decoded afterwards.
func TestInformer_ObjectThatATransformKeepsIsNamedWhenModified_D2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := func(name, version string) *corev1.ConfigMap {
			cm := fixture.ConfigMap(name, version)
			cm.Data = map[string]string{"key": "as sent", "another": "as sent, too"}
			return cm
		}
		more := make(chan struct{})
		server := fixture.Serve(t, fixture.Page(t, "6", "", with("a", "1"), with("b", "2"), with("c", "3")), fixture.Watch(func(w http.ResponseWriter, r *http.Request) {
			<-more
			for _, name := range []string{"d", "e", "f"} {
				_, _ = w.Write(fixture.Wire(t, listwatch.FrameAdded, with(name, "7")))
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}))
		var named sync.Map
		f, _ := factoryOn(t, server, Options{PagedLists: true, DetectMutations: MutationDetection{
			Rate:       0.999999999, // every object, but none is checked when it is decoded
			OnMutation: func(m Mutation) { named.Store(m.Key.Name, m.String()) },
		}})
		configs := For[*corev1.ConfigMap](f)
		var kept []*corev1.ConfigMap
		if err := configs.SetTransform(func(cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			if len(kept) < 3 { // the handler runs after these
				kept = append(kept, cm)
			}
			cm.Annotations = map[string]string{"seen": "yes"}
			return cm, nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := configs.AddHandler(func(e kube.Event[*corev1.ConfigMap]) {
			if e.New.Name != "c" || e.Resync {
				return
			}
			if reflect.ValueOf(kept[1].Data).Pointer() != reflect.ValueOf(kept[2].Data).Pointer() {
				t.Error("b and c do not share their data; this tests nothing")
			}
			kept[2].Data["key"] = "modified"
		}, HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		defer runFactory(t, f)()
		<-configs.Synced()
		time.Sleep(3 * time.Minute)
		if text, ok := named.Load("c"); !ok || !strings.Contains(text.(string), "key") {
			t.Errorf("the mutation is named as %v, want the object and the field", text)
		}
		close(more)
		time.Sleep(time.Second)
		n := 0
		for cm := range configs.Lister().All() {
			if n++; cm.Data["key"] != "as sent" || cm.Annotations["seen"] != "yes" {
				t.Errorf("%s has %v: what was done to another object is in it", cm.Name, cm.Data)
			}
		}
		if n != 6 {
			t.Errorf("%d objects, want 6", n)
		}
	})
}
