// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/hack/tools/bench/internal/cluster"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

func oneFactory(b testing.TB, w *wire, packed bool) *informer.SharedInformerFactory {
	if packed {
		return newCompactFactory(b, w.config(), fleetScheme(b))
	}
	return newFactory(b, w.config(), fleetScheme(b), dropped)
}

// BenchmarkCompact_Heap reports the live heap per object of a compact informer, and of
// one that is not, with a handler.
func BenchmarkCompact_Heap(b *testing.B) {
	n := wirePods(b)
	compare := func(name string, w *wire, n int, like cluster.Object) {
		for _, packed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/compact-%v", name, packed), func(b *testing.B) {
				heaps(b, w, n, func() (<-chan struct{}, func(context.Context)) {
					return flyballOf(b, w, oneFactory(b, w, packed), like)
				})
			})
		}
	}
	for _, owners := range []int{1000, n} {
		pods := cluster.NewPods(cluster.PodOptions{Count: n, Owners: owners})
		compare(fmt.Sprintf("typed/owners-%d", owners), podWire(b, cluster.Protobuf, pods), n, &corev1.Pod{})
	}
	pods := cluster.NewPods(cluster.PodOptions{Count: n / 2})
	compare("unstructured", podWire(b, cluster.JSON, pods), n/2, &unstructured.Unstructured{})
	databases := cluster.NewDatabases(cluster.ResourceOptions{Count: n / 4})
	w := newWire(b, cluster.JSON, cluster.FleetVersion.WithKind(databases.Kind()), cluster.Events(encoder(b, cluster.JSON), databases.Collection()))
	compare("custom-8kB", w, n/4, databases.Typed(0))
}

// BenchmarkCompact_Get reads Pods that are hot, and Pods that are decoded for the reader.
func BenchmarkCompact_Get(b *testing.B) {
	n := wirePods(b)
	pods := cluster.NewPods(cluster.PodOptions{Count: n})
	w := podWire(b, cluster.Protobuf, pods)
	for _, packed := range []bool{false, true} {
		f := oneFactory(b, w, packed)
		i := informer.For[*corev1.Pod](f)
		ctx, cancel := context.WithCancel(context.Background())
		stop := running(func(ctx context.Context) { _ = f.Run(ctx) })
		if _, err := i.WaitForSync(ctx); err != nil {
			b.Fatal(err)
		}
		keys := make([]kube.Key, n)
		for at := range keys {
			keys[at] = kube.KeyOf(pods.Pod(at))
		}
		rand.Shuffle(n, func(x, y int) { keys[x], keys[y] = keys[y], keys[x] })
		for name, of := range map[string]int{"hot": 200, "cold": n} {
			b.Run(fmt.Sprintf("%s/compact-%v", name, packed), func(b *testing.B) {
				b.ReportAllocs()
				l := i.Lister()
				for at := 0; b.Loop(); at++ {
					if _, err := l.Get(keys[at%of]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		cancel()
		stop()
	}
}
