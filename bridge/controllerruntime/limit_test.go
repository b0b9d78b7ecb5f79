// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simulate/simtest"
)

// limited returns a running cache of twenty ConfigMaps of a kilobyte each, and what it logs.
func limited(t *testing.T, limit int64, opts cache.Options) (*simtest.Server, *kinds, *[]string) {
	t.Helper()
	var objects []runtime.Object
	for n := range 20 {
		objects = append(objects, configMap("one", fmt.Sprint("c", n), map[string]string{"a": strings.Repeat("x", 1000)}))
	}
	server := simtest.New(t, nil, objects...)
	made, err := CacheOptions{ReadLimit: limit}.NewCache(server.Config, opts)
	if err != nil {
		t.Fatal(err)
	}
	c, said := made.(*kinds), &[]string{}
	c.log = funcr.New(func(_, line string) { *said = append(*said, line) }, funcr.Options{})
	if _, ok := errors.AsType[*cache.ErrCacheNotStarted](c.List(t.Context(), &corev1.ConfigMapList{})); !ok || len(c.slots()) != 0 && limit > 0 {
		t.Errorf("a read before the start leaves %d informers, want the error of a cache that has not started", len(c.slots()))
	}
	run(t, c)
	return server, c, said
}

// mapsIn returns the ConfigMap c0 in each form.
func mapsIn() []client.Object {
	loose, metadata := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	loose.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return []client.Object{&corev1.ConfigMap{}, loose, metadata}
}

var mapKey = client.ObjectKey{Namespace: "one", Name: "c0"}

func TestReadLimit_ReadOfMoreIsRefusedAndStartsNothing_D6(t *testing.T) {
	server, c, said := limited(t, 15_000, cache.Options{})
	for range 3 {
		for _, form := range mapsIn()[:2] {
			err := c.Get(t.Context(), mapKey, form)
			refused, ok := errors.AsType[*ReadLimitError](err)
			if !ok {
				t.Fatalf("%T: got %v, want the refusal", form, err)
			}
			if refused.Objects != 20 || refused.Bytes < 20_000 || refused.Bytes > 40_000 || refused.Limit != 15_000 || refused.Kind.Kind != "ConfigMap" {
				t.Errorf("%T: the refusal is %+v, want 20 objects of more than a kilobyte", form, refused)
			}
			for _, part := range []string{"ConfigMap", "limit_test.go:", fmt.Sprint(refused.Bytes), "15000", "API reader", "GetInformer", "ByObject"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not say %q", err, part)
				}
			}
		}
	}
	lists := 0
	for _, r := range server.Served() {
		if r.Verb == "list" && strings.HasSuffix(r.Path, "/configmaps") {
			lists++
			if !strings.Contains(r.Query, "limit=1") {
				t.Errorf("the list %q is not of one object", r.Query)
			}
		}
	}
	if n := len(c.slots()); n != 0 || server.Watches(configMaps) != 0 || lists != 2 || len(*said) != 2 {
		t.Errorf("%d informers, %d lists, log %q; want no informer, and one list and one line for each form", n, lists, *said)
	}
	if err := c.Get(t.Context(), mapKey, mapsIn()[2]); err != nil {
		t.Errorf("a read of the metadata, which is smaller: %v", err)
	}
}

func TestReadLimit_WhatIsAskedForOrFitsIsRead(t *testing.T) {
	_, c, _ := limited(t, 15_000, cache.Options{})
	if err := c.Get(t.Context(), mapKey, &corev1.ConfigMap{}); err == nil {
		t.Fatal("the read is not refused; the test looks at nothing")
	}
	if _, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), mapKey, &corev1.ConfigMap{}); err != nil {
		t.Errorf("a read of a kind that is watched: %v", err)
	}
	if err := c.Get(t.Context(), mapKey, mapsIn()[2]); err != nil {
		t.Errorf("a read of the metadata of a kind that is watched: %v", err)
	}
	for name, opts := range map[string]cache.Options{
		"an empty namespace": {DefaultNamespaces: map[string]cache.Config{"two": {}}},
		"a selector":         {DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"name": "c1"})},
	} {
		_, c, _ := limited(t, 15_000, opts)
		if err := c.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, limit := range []int64{0, 1 << 20} {
		_, c, _ := limited(t, limit, cache.Options{})
		if got := strings.Count(names(t, c), "/"); got != 20 {
			t.Errorf("with a limit of %d there are %d objects, want 20", limit, got)
		}
	}
}

func TestReadLimit_RefusalIsCountedAnewAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, c, said := limited(t, 15_000, cache.Options{})
		read := func() error { return c.Get(t.Context(), mapKey, &corev1.ConfigMap{}) }
		if err := read(); err == nil {
			t.Fatal("the read is not refused")
		}
		for n := range 19 {
			if err := server.Remove(configMaps, client.ObjectKey{Namespace: "one", Name: fmt.Sprint("c", n+1)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := read(); err == nil {
			t.Error("the objects are counted for each read")
		}
		time.Sleep(refusedFor)
		if err := read(); err != nil || len(*said) < 2 {
			t.Errorf("with one object left, after a minute: %v, log %q", err, *said)
		}
	})
}

// The informer says what is wrong with a list that it may not, or cannot, make. Another failure is
// the read's.
func TestReadLimit_FailedCount(t *testing.T) {
	server, c, _ := limited(t, 15_000, cache.Options{})
	server.Deny("list", configMaps)
	server.Deny("watch", configMaps)
	if err := c.Get(t.Context(), mapKey, &corev1.ConfigMap{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "list and watch") {
		t.Errorf("without the right: %v, want which rights are missing", err)
	}
	server.Allow("list", configMaps)
	server.Allow("watch", configMaps)
	server.FailConversion(configMaps, true)
	err := c.Get(t.Context(), mapKey, &corev1.ConfigMap{})
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError || !strings.Contains(err.Error(), "ReadLimit") {
		t.Errorf("a count that fails: %v, want why", err)
	}
	if n := len(c.slots()); n != 0 {
		t.Errorf("%d informers are left, want none", n)
	}
}
