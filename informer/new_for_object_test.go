// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/kube"
)

// An informer made by New for a type that is not known at compile time shows
// own writes of that type and of another representation.
func TestNewForObject_OwnWritesAreShown_B11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer[kube.Object]()
		s.Write(configMap("a", "1"))
		i := informer.NewForObject(s, &corev1.ConfigMap{}, configMaps, informer.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- i.Run(ctx) }()
		<-i.Synced()
		key := kube.Key{Namespace: "ns", Name: "a"}
		read := func() (version, value string) {
			t.Helper()
			got, err := i.Lister().Get(key)
			if err != nil {
				t.Fatal(err)
			}
			return got.GetResourceVersion(), got.(*corev1.ConfigMap).Data["v"]
		}
		version, _ := read()
		if version != "1" {
			t.Fatalf("the list brought version %s, want 1", version)
		}

		own := configMap("a", "2")
		own.UID, own.ResourceVersion = "uid-1", "10"
		later := configMap("a", "3")
		later.UID, later.ResourceVersion = "uid-1", "11"
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(later)
		if err != nil {
			t.Fatal(err)
		}
		for n, obj := range []kube.Object{own, &unstructured.Unstructured{Object: fields}} {
			i.Observe(kube.Written{
				Kind: configMaps, Effect: kube.Stored, Key: key, UID: "uid-1",
				Version: kube.ParseVersion(obj.GetResourceVersion()), Object: obj,
			})
			if version, value := read(); version != obj.GetResourceVersion() || value != []string{"2", "3"}[n] {
				t.Errorf("after an own write of a %T the read gives version %s with %q, want version %s with what was written", obj, version, value, obj.GetResourceVersion())
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}
