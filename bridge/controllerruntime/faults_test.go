// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

var keyA = types.NamespacedName{Namespace: "default", Name: "a"}

// reads checks what the cache has of the ConfigMap a.
func reads(t *testing.T, r client.Reader, want, means string) {
	t.Helper()
	cm := &corev1.ConfigMap{}
	if err := r.Get(t.Context(), keyA, cm); err != nil || cm.Data["v"] != want {
		t.Errorf("the cache has %q with %v, want %q: %s", cm.Data["v"], err, want, means)
	}
}

func put(t *testing.T, s *simtest.Server, obj runtime.Object) {
	t.Helper()
	if _, err := s.Put(obj); err != nil {
		t.Fatal(err)
	}
}

func valueA(v string) *corev1.ConfigMap {
	cm := valued("a", v)
	cm.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return cm
}

func TestCache_SilentWatchIsOpenedAgain_A1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, _ := started(t, cache.Options{}, valueA("1"))
		reads(t, c, "1", "it has not synced")
		time.Sleep(2 * time.Minute)
		s.Mute(configMaps)
		put(t, s, valueA("2"))
		time.Sleep(time.Second)
		reads(t, c, "1", "the watch is not silent; this test tests nothing")
		time.Sleep(3 * time.Minute)
		reads(t, c, "2", "a silent watch blinds the cache")
	})
}

func TestCache_StreamingListThatNeverEndsIsReplacedByPages_A2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, _ := started(t, cache.Options{}, valueA("1"))
		s.NoEndBookmark(configMaps, true)
		begun := time.Now()
		reads(t, c, "1", "a streaming list without an end is waited for")
		if took := time.Since(begun); took < time.Second || took > 2*time.Minute {
			t.Errorf("the first read took %s, want some time, but less than two minutes", took)
		}
	})
}

func TestCache_KindThatAppearsLaterIsRead_A10(t *testing.T) {
	widget := schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"}
	a := &unstructured.Unstructured{}
	a.SetGroupVersionKind(widget)
	a.SetNamespace(keyA.Namespace)
	a.SetName(keyA.Name)
	read := func(t *testing.T, c *kinds) error { return c.Get(t.Context(), keyA, a.DeepCopy()) }
	synctest.Test(t, func(t *testing.T) {
		s, c, _ := started(t, cache.Options{}, valueA("1"))
		if err := read(t, c); !meta.IsNoMatchError(err) {
			t.Errorf("a read of a kind that is not served gives %v, want that nothing matches", err)
		}
		reads(t, c, "1", "another kind suffers")
		s.Install(simulate.Kind{GroupVersionKind: widget, Namespaced: true})
		put(t, s, a)
		time.Sleep(70 * time.Second)
		if err := read(t, c); err != nil {
			t.Errorf("the kind is served, and a read gives %v", err)
		}
	})
}

func TestCache_RevokedRightKeepsWhatIsKnownAndHeals_A11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, _ := started(t, cache.Options{}, valueA("1"))
		reads(t, c, "1", "it has not synced")
		for _, verb := range []string{"list", "watch"} {
			s.Deny(verb, configMaps)
		}
		time.Sleep(12 * time.Minute)
		put(t, s, valueA("2"))
		time.Sleep(time.Minute)
		reads(t, c, "1", "what was known stays, and is not newer than the right")
		if err := c.List(t.Context(), &corev1.SecretList{}); err != nil {
			t.Errorf("another kind suffers: %v", err)
		}
		for _, verb := range []string{"list", "watch"} {
			s.Allow(verb, configMaps)
		}
		time.Sleep(70 * time.Second)
		reads(t, c, "2", "the right is granted again, and the cache does not look")
	})
}

// failing is a mapper that knows nothing.
type failing struct {
	meta.RESTMapper
	err error
}

func (f failing) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, f.err
}

func TestNewCache_BadInputIsAnErrorWhereItIsUsed(t *testing.T) {
	s, first, _ := started(t, cache.Options{}, valueA("1"))
	second, err := NewCache(s.Config, cache.Options{Scheme: nil})
	if err != nil {
		t.Fatal(err)
	}
	run(t, second)
	for _, c := range []cache.Cache{first, second} {
		reads(t, c, "1", "each cache of a process works, with client-go's scheme if there is none")
	}
	foreign, err := NewCache(s.Config, cache.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	run(t, foreign)
	if err := foreign.Get(t.Context(), keyA, &corev1.ConfigMap{}); !runtime.IsNotRegisteredError(err) {
		t.Errorf("a read of a type in no scheme gives %v, want that it is not registered", err)
	}
	broken := errors.New("no mapping today")
	unmapped, err := NewCache(s.Config, cache.Options{Mapper: failing{meta.NewDefaultRESTMapper(nil), broken}})
	if err != nil {
		t.Fatal(err)
	}
	run(t, unmapped)
	if err := unmapped.Get(t.Context(), keyA, &corev1.ConfigMap{}); !errors.Is(err, broken) {
		t.Errorf("a read with a mapper that fails gives %v, want its error", err)
	}
}
