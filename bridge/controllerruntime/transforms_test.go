// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// wrongTransforms are what operators do in transforms and should not. What they do to an object
// whose name ends in 3 is not accepted if its name is in refusing.
func wrongTransforms() map[string]func(*corev1.ConfigMap) (any, error) {
	calls, kept, shared := 0, []*corev1.ConfigMap(nil), map[string]string{"team": "a"}
	var keptData []map[string]string
	return map[string]func(*corev1.ConfigMap) (any, error){
		"another type": func(cm *corev1.ConfigMap) (any, error) { return &corev1.Secret{ObjectMeta: cm.ObjectMeta}, nil },
		"another name": func(cm *corev1.ConfigMap) (any, error) { cm.Name = "other"; return cm, nil },
		"no version":   func(cm *corev1.ConfigMap) (any, error) { cm.ResourceVersion = ""; return cm, nil },
		"nothing":      func(*corev1.ConfigMap) (any, error) { return nil, nil },
		"an error":     func(*corev1.ConfigMap) (any, error) { return nil, errors.New("refused") },
		"a panic":      func(*corev1.ConfigMap) (any, error) { panic("a fault of the transform") },
		"keeps objects": func(cm *corev1.ConfigMap) (any, error) {
			kept = append(kept, cm)
			return cm, nil
		},
		"changes a part that it has kept": func(cm *corev1.ConfigMap) (any, error) {
			for _, data := range keptData {
				data["text"] = "changed"
			}
			keptData = append(keptData, cm.Data)
			cm.Annotations = map[string]string{"seen": "yes"}
			return cm, nil
		},
		"gives all the same part": func(cm *corev1.ConfigMap) (any, error) { cm.Annotations = shared; return cm, nil },
		"is not deterministic": func(cm *corev1.ConfigMap) (any, error) {
			calls++
			cm.Annotations = map[string]string{"call": fmt.Sprint(calls)}
			if calls%2 == 0 {
				cm.Data["text"] = cm.Data["text"][:100]
			}
			return cm, nil
		},
	}
}

var refusing = []string{"another type", "another name", "no version", "nothing", "an error", "a panic"}

// transformed records what a transform has returned, as text, by key and version.
type transformed struct {
	mu  sync.Mutex
	all map[string][]string
}

func (r *transformed) record(do func(*corev1.ConfigMap) (any, error), always bool) toolscache.TransformFunc {
	return func(in any) (any, error) {
		cm, ok := in.(*corev1.ConfigMap)
		if !ok || !always && !strings.HasSuffix(cm.Name, "3") {
			return in, nil
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		at := cm.Name + "@" + cm.ResourceVersion
		out, err := do(cm)
		if err == nil && out == any(cm) {
			r.all[at] = append(r.all[at], textOf(cm))
			if cm.Annotations["seen"] != "" { // while it is open, it may be what the transform has kept
				changed := cm.DeepCopy()
				changed.Data["text"] = "changed"
				r.all[at] = append(r.all[at], textOf(changed))
			}
		}
		return out, err
	}
}

// Whatever a transform does, an object is what it made of the newest version, or is refused; the
// others are as they are, and each version is one event.
func TestCache_WrongTransformsHarmOnlyTheirObjects_B9(t *testing.T) {
	for name, do := range wrongTransforms() {
		for _, limit := range []int64{-1, 1_500_000} {
			t.Run(fmt.Sprintf("%s, limit %d", name, limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { wronglyTransformed(t, do, slices.Contains(refusing, name), limit) })
			})
		}
	}
}

func wronglyTransformed(t *testing.T, do func(*corev1.ConfigMap) (any, error), refuses bool, limit int64) {
	const n = 300
	put := func(s *simtest.Server, i, generation int) runtime.Object {
		cm := configMap("one", fmt.Sprint("c", i), map[string]string{"text": strings.Repeat(fmt.Sprintf("%03d/%d ", i, generation), 1500)})
		cm.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		if s != nil {
			if _, err := s.Put(cm); err != nil {
				t.Fatal(err)
			}
		}
		return cm
	}
	var objects []runtime.Object
	for i := range n {
		objects = append(objects, put(nil, i, 1))
	}
	server := simtest.New(t, nil, objects...)
	r := &transformed{all: map[string][]string{}}
	made, err := CacheOptions{MemoryLimit: limit}.NewCache(server.Config, cache.Options{
		DefaultTransform: r.record(do, !refuses), DefaultUnsafeDisableDeepCopy: new(false),
	})
	if err != nil {
		t.Fatal(err)
	}
	c := made.(*kinds)
	var events sync.Map
	var relisted atomic.Bool // which gives each object again
	watched, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	told := func(obj any) {
		m := obj.(metav1.Object)
		at := m.GetName() + "@" + m.GetResourceVersion()
		if _, again := events.LoadOrStore(at, true); again && !relisted.Load() {
			t.Errorf("%s is given to a handler twice", at)
		}
	}
	if _, err := watched.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: told, UpdateFunc: func(_, obj any) { told(obj) },
	}); err != nil {
		t.Fatal(err)
	}
	run(t, c)
	check := func(when string, gone int) {
		t.Helper()
		time.Sleep(time.Minute)
		synctest.Wait()
		listed := namesOf(t, c)
		for i := range n {
			name := fmt.Sprint("c", i)
			got := &corev1.ConfigMap{}
			err := c.Get(t.Context(), types.NamespacedName{Namespace: "one", Name: name}, got)
			refused := refuses && strings.HasSuffix(name, "3")
			if i < gone || refused {
				if listed[name] || err == nil {
					t.Errorf("%s: %s is read, with %v", when, name, err)
				}
				if _, undecodable := errors.AsType[*kube.UndecodableError](err); undecodable != (refused && i >= gone) {
					t.Errorf("%s: %s: %v, want that it is refused: %v", when, name, err, refused)
				}
				continue
			}
			is := server.Object(configMaps, types.NamespacedName{Namespace: "one", Name: name})
			if err != nil || !listed[name] || got.ResourceVersion != is.GetResourceVersion() {
				t.Fatalf("%s: %s is read at version %s, in lists %v, with %v; the server has version %s", when, name, got.ResourceVersion, listed[name], err, is.GetResourceVersion())
			}
			if !r.returned(got, is, refuses) {
				t.Errorf("%s: %s is %.300v, want what the transform returned for it", when, name, got)
			}
		}
	}
	check("after the start", 0)
	if s := c.factory.Snapshot()[0]; (s.Packed > 0) != (limit > 0) {
		t.Errorf("%d bytes are packed with a limit of %d", s.Packed, limit)
	}
	for i := range 40 {
		put(server, i, 2)
	}
	check("after updates", 0)
	relisted.Store(true)
	server.Compact()
	server.CloseWatches(configMaps)
	for i := range 10 {
		if err := server.Remove(configMaps, types.NamespacedName{Namespace: "one", Name: fmt.Sprint("c", i)}); err != nil {
			t.Fatal(err)
		}
	}
	server.Compact()
	check("after a relist", 10)
}

// namesOf lists the ConfigMaps.
func namesOf(t *testing.T, c *kinds) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for name := range strings.FieldsSeq(names(t, c)) {
		out[strings.TrimPrefix(name, "one/")] = true
	}
	return out
}

// returned reports whether got is one of the results for its version, or, if the object was not
// transformed, as the server has it.
func (r *transformed) returned(got *corev1.ConfigMap, is metav1.Object, untouched bool) bool {
	if untouched && !strings.HasSuffix(got.Name, "3") {
		return textOf(got) == textOf(is)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.all[got.Name+"@"+got.ResourceVersion], textOf(got))
}

// textOf returns what a ConfigMap has, without its kind, which readers are given, and without
// managedFields.
func textOf(obj any) string {
	var cm corev1.ConfigMap
	text, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(text, &cm)
	}
	cm.TypeMeta, cm.ManagedFields = metav1.TypeMeta{}, nil
	out, _ := json.Marshal(cm)
	return fmt.Sprintf("%s %v", out, err)
}
