// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// gauge is a Gauge as a program knows it that is older than the kind's spec.limit.
type gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Size resource.Quantity `json:"size"`
	} `json:"spec"`
}

func (g *gauge) DeepCopyObject() runtime.Object {
	out := *g
	g.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Size = g.Spec.Size.DeepCopy()
	return &out
}

type gaugeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []gauge `json:"items"`
}

func (l *gaugeList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*gauge))
	}
	return &out
}

var gaugeKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Gauge"}

// looseGauge is a Gauge with all of its fields.
func looseGauge(name, size string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size, "limit": "keep me"}}}
	u.SetGroupVersionKind(gaugeKind)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

// startedGauges is started with a client that has the Go type.
func startedGauges(t *testing.T, objects ...runtime.Object) (*simtest.Server, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(gaugeKind, &gauge{})
	scheme.AddKnownTypeWithName(gaugeKind.GroupVersion().WithKind("GaugeList"), &gaugeList{})
	metav1.AddToGroupVersion(scheme, gaugeKind.GroupVersion())
	server := simtest.New(t, scheme, objects...)
	c, err := NewCache(server.Config, cache.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	run(t, c)
	cl, err := NewClient(server.Config, client.Options{Scheme: scheme, Cache: &client.CacheOptions{Reader: c, Unstructured: true}})
	if err != nil {
		t.Fatal(err)
	}
	return server, cl
}

// A typed write whose Go type lacks a field leaves it in the Unstructured cache, which has the
// write before the watch shows it.
func TestClient_NarrowTypeLeavesTheUnstructuredCacheWhole_C2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, cl := startedGauges(t, looseGauge("a", "1"))
		ctx, key := t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}
		typed, plain := &gauge{}, looseGauge("a", "")
		for _, obj := range []client.Object{typed, plain} { // starts the informers
			if err := cl.Get(ctx, key, obj); err != nil {
				t.Fatal(err)
			}
		}
		server.LagKindTo(schema.GroupResource{Group: gaugeKind.Group, Resource: "gauges"}, server.Revision())
		labelled := func(by string) *gauge {
			out := typed.DeepCopyObject().(*gauge)
			out.Labels = map[string]string{"by": by}
			return out
		}
		for _, write := range []struct {
			name string
			call func() error
		}{
			{"patch", func() error { return cl.Patch(ctx, labelled("patch"), client.MergeFrom(typed)) }},
			{"raw patch", func() error {
				return cl.Patch(ctx, labelled(""), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"by":"raw"}}}`)))
			}},
			{"finalizer", func() error {
				held := labelled("finalizer")
				held.Finalizers = []string{"example.org/hold"}
				return cl.Patch(ctx, held, client.MergeFrom(typed))
			}},
			{"delete that waits", func() error { return cl.Delete(ctx, labelled("")) }},
		} {
			if err := write.call(); err != nil {
				t.Fatalf("%s: %v", write.name, err)
			}
			stored := &gauge{}
			if err := server.Client.Get(ctx, kube.Key(key), stored); err != nil {
				t.Fatal(err)
			}
			for _, obj := range []client.Object{typed, plain} {
				if err := cl.Get(ctx, key, obj); err != nil || obj.GetResourceVersion() != stored.ResourceVersion {
					t.Errorf("after %s the %T has version %s, %v; want %s", write.name, obj, obj.GetResourceVersion(), err, stored.ResourceVersion)
				}
			}
			if limit, _, _ := unstructured.NestedString(plain.Object, "spec", "limit"); limit != "keep me" {
				t.Errorf("after %s the Unstructured cache has %v, want the field that the Go type lacks", write.name, plain.Object)
			}
		}
	})
}

// A quantity that takes far more to parse than its text makes its own object undecodable, in a
// list and in an event, and no other.
func TestCache_CostlyQuantityIsUndecodableAlone_B24(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, cl := startedGauges(t, looseGauge("a", "1"), looseGauge("b", "1e-10000000"))
		ctx := t.Context()
		at := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }
		refused := func(err error) bool {
			_, is := errors.AsType[*kube.UndecodableError](err)
			return is && strings.Contains(err.Error(), `the number "1e-10000000" has more than 128 digits`)
		}
		if err := cl.Get(ctx, at("a"), &gauge{}); err != nil {
			t.Errorf("beside the costly object: %v", err)
		}
		if err := cl.Get(ctx, at("b"), &gauge{}); !refused(err) {
			t.Errorf("got %v, want an UndecodableError that names the quantity", err)
		}
		if err := cl.Get(ctx, at("b"), looseGauge("b", "")); err != nil {
			t.Errorf("as an Unstructured: %v, want the object: it parses no quantity", err)
		}
		put(t, server, looseGauge("c", "2"))
		put(t, server, looseGauge("b", "3"))
		time.Sleep(time.Second)
		for name, size := range map[string]int64{"b": 3, "c": 2} {
			got := &gauge{}
			if err := cl.Get(ctx, at(name), got); err != nil || got.Spec.Size.Value() != size {
				t.Errorf("%s, by the watch: %v, %v, want the size %d", name, got.Spec.Size, err, size)
			}
		}
		put(t, server, looseGauge("b", "1e-10000000"))
		time.Sleep(time.Second)
		if err := cl.Get(ctx, at("b"), &gauge{}); !refused(err) {
			t.Errorf("by the watch: %v, want an UndecodableError that names the quantity", err)
		}
		var list gaugeList
		if err := cl.List(ctx, &list); err != nil || len(list.Items) != 2 {
			t.Errorf("listed %d, %v, want the objects that can be decoded", len(list.Items), err)
		}
	})
}
