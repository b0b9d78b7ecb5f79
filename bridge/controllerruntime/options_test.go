// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/simulate/simtest"
)

// A controller that creates a Secret for each ConfigMap reads it at once, with the one line.
func TestOptions_ReconcilerReadsWhatItWrote(t *testing.T) {
	const objects = 30
	simulated := simtest.New(t, nil)
	mgr, err := ctrl.NewManager(simulated.Config, Options(ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, objects)
	reconciled := reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		cl := mgr.GetClient()
		secret := &corev1.Secret{}
		err := cl.Get(ctx, req.NamespacedName, secret)
		if client.IgnoreNotFound(err) != nil || err == nil {
			return ctrl.Result{}, err
		}
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}
		if err := cl.Create(ctx, secret); err != nil {
			done <- fmt.Errorf("create %s: %w; the cache did not show the object of an earlier run", req, err)
			return ctrl.Result{}, nil
		}
		done <- cl.Get(ctx, req.NamespacedName, &corev1.Secret{})
		return ctrl.Result{}, nil
	})
	if err := ctrl.NewControllerManagedBy(mgr).Named("secrets").For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(reconciled); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	for n := range objects {
		if _, err := simulated.Put(configMap("default", fmt.Sprint("c", n), nil)); err != nil {
			t.Fatal(err)
		}
	}
	for range objects {
		if err := <-done; err != nil {
			t.Errorf("a read directly after a write: %v", err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the manager ended with %v", err)
	}
}

func TestOptions_OwnConstructorsStay(t *testing.T) {
	called := ""
	opts := Options(ctrl.Options{
		NewCache:  func(*rest.Config, cache.Options) (cache.Cache, error) { called += "cache "; return nil, nil },
		NewClient: func(*rest.Config, client.Options) (client.Client, error) { called += "client"; return nil, nil },
	})
	_, _ = opts.NewCache(nil, cache.Options{})
	_, _ = opts.NewClient(nil, client.Options{})
	if called != "cache client" {
		t.Errorf("called %q, want what the options had", called)
	}
}

// A cache that is not of NewCache has controller-runtime's client.
func TestNewClient_WithAnotherCacheIsControllerRuntimes(t *testing.T) {
	simulated := simtest.New(t, nil, configMap("default", "a", nil))
	for _, opts := range []client.Options{{}, {Cache: &client.CacheOptions{}}} {
		cl, err := NewClient(simulated.Config, opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := cl.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
	}
}

// reasons are the log lines that name NewInformer. controller-runtime takes one logger for the
// whole process, and none later than half a minute after its start.
var reasons = func() chan string {
	said := make(chan string, 1)
	log.SetLogger(funcr.New(func(_, line string) {
		if strings.Contains(line, "NewInformer is set; remove it") {
			select {
			case said <- line:
			default:
			}
		}
	}, funcr.Options{}))
	return said
}()

// An operator with informers of its own keeps them, and reads why the line has no effect.
func TestNewCache_OwnInformersAreLogged(t *testing.T) {
	if _, err := NewCache(simtest.New(t, nil).Config, cache.Options{NewInformer: toolscache.NewSharedIndexInformer}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reasons:
	default:
		t.Error("the log does not say that NewInformer is why flyball's informers are not used")
	}
}

// In a cache of which a part must be packed, each read has what it has in another.
func TestCacheOptions_PackedObjectsReadTheSame(t *testing.T) {
	var objects []runtime.Object
	for i := range 300 {
		meta := metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("n", i), Labels: map[string]string{"even": fmt.Sprint(i%2 == 0)}}
		text := strings.Repeat(fmt.Sprintf("%03d ", i), 2500)
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"text": text}},
			&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"text": []byte(text)}})
	}
	server := simtest.New(t, nil, objects...)
	var caches []*kinds
	for _, limit := range []int64{-1, 4_500_000} {
		made, err := CacheOptions{MemoryLimit: limit}.NewCache(server.Config, cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		run(t, made)
		caches = append(caches, made.(*kinds))
	}
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}, &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}} {
		for _, opts := range [][]client.ListOption{{client.MatchingLabels{"even": "true"}}, {client.UnsafeDisableDeepCopy}} {
			var got []string
			for _, c := range caches {
				out := list.DeepCopyObject().(client.ObjectList)
				if err := c.List(t.Context(), out, opts...); err != nil {
					t.Fatal(err)
				}
				got = append(got, sortedText(t, out))
			}
			if got[0] != got[1] {
				t.Errorf("%T: a cache with a limit lists other objects than one without: %d and %d bytes", list, len(got[1]), len(got[0]))
			}
		}
	}
	packed := 0
	for _, s := range caches[1].factory.Snapshot() {
		if s.Packed > 0 {
			packed++
		}
	}
	if packed == 0 {
		t.Error("nothing is packed")
	}
}

// Each option of cache.ByObject means the same beside a limit: reads are those of a cache without
// one, after the start and after changes.
func TestCacheOptions_ByObjectIsTheSameBesideALimit_D6(t *testing.T) {
	some := func(name string) cache.ByObject {
		switch by := (cache.ByObject{}); name {
		case "Label":
			by.Label = labels.SelectorFromSet(labels.Set{"even": "true"})
			return by
		case "Field":
			by.Field = fields.OneTermNotEqualSelector("metadata.name", "n1")
			return by
		case "Transform":
			by.Transform = func(in any) (any, error) {
				in.(metav1.Object).SetAnnotations(map[string]string{"by": "transform"})
				return in, nil
			}
			return by
		case "TransformStripManagedFields":
			by.Transform = cache.TransformStripManagedFields()
			return by
		case "UnsafeDisableDeepCopy":
			by.UnsafeDisableDeepCopy = new(true)
			return by
		case "EnableWatchBookmarks":
			by.EnableWatchBookmarks = new(false)
			return by
		case "SyncPeriod":
			by.SyncPeriod = new(time.Minute)
			return by
		default:
			by.Namespaces = map[string]cache.Config{"default": {LabelSelector: labels.SelectorFromSet(labels.Set{"even": "true"})}, "other": {}}
			return by
		}
	}
	for _, name := range []string{
		"Label", "Field", "Transform", "TransformStripManagedFields", "UnsafeDisableDeepCopy", "EnableWatchBookmarks", "SyncPeriod", "Namespaces",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := simtest.New(t, nil, append(largeMaps("default", 1), largeMaps("other", 1)[:20]...)...)
				var caches []*kinds
				for _, limit := range []int64{-1, 1_200_000} {
					made, err := CacheOptions{MemoryLimit: limit}.NewCache(server.Config, cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: some(name)}})
					if err == nil {
						err = made.IndexField(t.Context(), &corev1.ConfigMap{}, "even", func(obj client.Object) []string { return []string{obj.GetLabels()["even"]} })
					}
					if err != nil {
						t.Fatal(err)
					}
					run(t, made)
					caches = append(caches, made.(*kinds))
				}
				sameReads(t, caches)
				for _, obj := range largeMaps("default", 2)[:50] {
					put(t, server, obj)
				}
				if err := server.Remove(configMaps, types.NamespacedName{Namespace: "default", Name: "n60"}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				sameReads(t, caches)
				if s := caches[1].factory.Snapshot()[0]; s.Packed == 0 {
					t.Error("nothing is packed")
				}
			})
		})
	}
}

// largeMaps are 300 ConfigMaps of 10 kB.
func largeMaps(namespace string, generation int) (objects []runtime.Object) {
	for i := range 300 {
		objects = append(objects, &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("n", i), Labels: map[string]string{"even": fmt.Sprint(i%2 == 0)}},
			Data:       map[string]string{"text": strings.Repeat(fmt.Sprintf("%03d/%d ", i, generation), 1500)},
		})
	}
	return objects
}

// sameReads compares lists and gets of two caches.
func sameReads(t *testing.T, caches []*kinds) {
	t.Helper()
	var lists, gets [2]string
	for i, c := range caches {
		for _, opts := range [][]client.ListOption{{}, {client.InNamespace("default")}, {client.MatchingFields{"even": "true"}}, {client.MatchingLabels{"even": "false"}}} {
			var list corev1.ConfigMapList
			if err := c.List(t.Context(), &list, opts...); err != nil {
				t.Fatal(err)
			}
			lists[i] += sortedText(t, &list)
		}
		for n := range 100 {
			var cm corev1.ConfigMap
			err := c.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: fmt.Sprint("n", n)}, &cm)
			gets[i] += fmt.Sprintln(cm.ObjectMeta, cm.Data, err)
		}
	}
	if lists[0] != lists[1] || gets[0] != gets[1] || len(lists[0]) < 100_000 {
		t.Errorf("a cache with a limit reads other objects than one without: %d and %d bytes of lists, %d and %d of gets", len(lists[1]), len(lists[0]), len(gets[1]), len(gets[0]))
	}
}

// A kind of which even the metadata does not fit is not read in part: reads end with their context
// and the state says why. Another kind, and what comes by a watch, is cached.
func TestCacheOptions_WhatDoesNotFitPackedIsNamed_D6(t *testing.T) {
	noise := func(n int) string {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte('a' + rand.IntN(26))
		}
		return string(text)
	}
	for name, objects := range map[string][]runtime.Object{
		"the metadata":   largeMaps("default", 1),
		"a large object": {configMap("default", "n0", map[string]string{"text": noise(900_000)})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := simtest.New(t, nil, objects...)
				made, err := CacheOptions{MemoryLimit: 8_000}.NewCache(server.Config, cache.Options{})
				if err != nil {
					t.Fatal(err)
				}
				run(t, made)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				key := types.NamespacedName{Namespace: "default", Name: "n0"}
				if err := made.Get(ctx, key, &corev1.ConfigMap{}); !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "DoesNotFit") || !strings.Contains(err.Error(), "budget") {
					t.Errorf("a read of what does not fit: %v, want that, and why", err)
				}
				if err := made.List(ctx, &corev1.ConfigMapList{}); err == nil {
					t.Error("a list of what does not fit succeeds")
				}
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "n0"}}
				if err := made.Get(t.Context(), key, secret); !apierrors.IsNotFound(err) {
					t.Errorf("a read of a kind without objects: %v", err)
				}
				secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
				secret.Data = map[string][]byte{"text": []byte(noise(300_000))}
				put(t, server, secret)
				time.Sleep(time.Minute)
				var got corev1.Secret
				if err := made.Get(t.Context(), key, &got); err != nil || !bytes.Equal(got.Data["text"], secret.Data["text"]) {
					t.Errorf("an object that came by a watch, larger than the limit, is read with %d bytes and %v", len(got.Data["text"]), err)
				}
			})
		})
	}
}

// sortedText returns all of the objects of a list.
func sortedText(t *testing.T, list client.ObjectList) string {
	items, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, 0, len(items))
	for _, obj := range items {
		text, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// An update of an object without its managedFields leaves those on the server.
func TestCacheOptions_DroppedManagedFieldsStayOnTheServer(t *testing.T) {
	t.Run("simulated", func(t *testing.T) { updatesWithoutManagedFields(t, simtest.New(t, nil).Config) })
	t.Run("real", func(t *testing.T) {
		updatesWithoutManagedFields(t, realServer(t))
	})
}

func updatesWithoutManagedFields(t *testing.T, cfg *rest.Config) {
	writer, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	applied := applycorev1.ConfigMap("a", "default").WithData(map[string]string{"theirs": "1"})
	if err := writer.Apply(t.Context(), applied, client.FieldOwner("them")); err != nil {
		t.Fatal(err)
	}
	made, err := CacheOptions{DropManagedFields: true}.NewCache(cfg, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, made)
	cl, err := NewClient(cfg, client.Options{Cache: &client.CacheOptions{Reader: made}})
	if err != nil {
		t.Fatal(err)
	}
	var cached, now corev1.ConfigMap
	key := types.NamespacedName{Namespace: "default", Name: "a"}
	if err := cl.Get(t.Context(), key, &cached); err != nil {
		t.Fatal(err)
	}
	if cached.ManagedFields != nil {
		t.Errorf("the cached object has managedFields %v", cached.ManagedFields)
	}
	cached.Data["ours"] = "2"
	if err := cl.Update(t.Context(), &cached, client.FieldOwner("us")); err != nil {
		t.Fatal(err)
	}
	if err := writer.Get(t.Context(), key, &now); err != nil {
		t.Fatal(err)
	}
	owners := map[string]string{}
	for _, entry := range now.ManagedFields {
		owners[entry.Manager] = entry.FieldsV1.GetRawString()
	}
	if !strings.Contains(owners["them"], `"f:theirs"`) || !strings.Contains(owners["us"], `"f:ours"`) || strings.Contains(owners["us"], `"f:theirs"`) {
		t.Errorf("after the update the fields are of %v, want each of its writer", owners)
	}
}
