// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/hack/tools/bench/internal/cluster"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/cputime"
)

// sized returns a size from the environment, for runs that are smaller or larger than usual.
func sized(b testing.TB, name string, usual int) int {
	b.Helper()
	text := os.Getenv("FLYBALL_BENCH_" + name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		b.Fatalf("FLYBALL_BENCH_%s: %q is not a number", name, text)
	}
	return n
}

// wirePods is the number of encoded Pods.
func wirePods(b testing.TB) int { return sized(b, "PODS", 20_000) }

var wireForms = []struct {
	name string
	form cluster.Form
}{{"protobuf", cluster.Protobuf}, {"JSON", cluster.JSON}}

var onWire = []string{"flyball", "client-go", "controller-runtime"}

// wireOwners are the numbers of owners of the Pods; of the last, no Pod has the same as
// another.
var wireOwners = []int{100, 1000, 100_000}

// BenchmarkInformer_SyncBytes stores 20,000 Pods of 1,000 owners from a streaming list of
// bytes: the cost of a start without the network. managedFields are on the wire; all
// contestants drop them, or each has its defaults. MB/cpu-s are those of the wire.
func BenchmarkInformer_SyncBytes(b *testing.B) {
	for _, form := range wireForms {
		b.Run(form.name, func(b *testing.B) {
			pods := cluster.NewPods(cluster.PodOptions{Count: wirePods(b), ManagedFields: true})
			w := podWire(b, form.form, pods)
			for _, f := range []managed{byDefault, dropped} {
				b.Run(string(f), func(b *testing.B) {
					for _, name := range onWire {
						b.Run(name, func(b *testing.B) {
							cpu := syncs(b, pods.Len(), func() contestant { return wired(b, w.config(), name, f) })
							n := float64(b.N * pods.Len())
							b.ReportMetric(cpu.Seconds()*1e6/n, "cpu-us/object")
							b.ReportMetric(float64(b.N*w.bytes)/1e6/cpu.Seconds(), "MB/cpu-s")
						})
					}
				})
			}
			runtime.KeepAlive(w)
		})
	}
}

// BenchmarkInformer_Heap reports the live heap per object of an informer with a handler:
// of 20,000 Pods from protobuf for each number of owners, from JSON, and as Unstructured,
// with managedFields and without; and of custom resources of three sizes, typed and as
// Unstructured. All are indexed by namespace, typed Pods by node, too.
func BenchmarkInformer_Heap(b *testing.B) {
	for _, owners := range wireOwners {
		b.Run(fmt.Sprintf("protobuf/owners-%d", owners), func(b *testing.B) { podHeaps(b, cluster.Protobuf, owners) })
	}
	b.Run("levers", leverHeaps)
	b.Run("JSON/owners-1000", func(b *testing.B) { podHeaps(b, cluster.JSON, 1000) })
	b.Run("unstructured/owners-1000", func(b *testing.B) {
		pods := cluster.NewPods(cluster.PodOptions{Count: wirePods(b) / 2, ManagedFields: true})
		w := podWire(b, cluster.JSON, pods)
		for _, f := range []managed{kept, dropped} {
			b.Run(string(f), func(b *testing.B) { objectHeaps(b, w, pods.Len(), &unstructured.Unstructured{}, f) })
		}
	})
	n := wirePods(b)
	customHeaps(b, cluster.NewCertificates(cluster.ResourceOptions{Count: n}))
	customHeaps(b, cluster.NewDatabases(cluster.ResourceOptions{Count: n / 4}))
	customHeaps(b, cluster.NewWorkflows(cluster.ResourceOptions{Count: n / 20}))
}

func customHeaps[T cluster.Object](b *testing.B, r *cluster.Resources[T]) {
	b.Run(r.Kind(), func(b *testing.B) {
		w := newWire(b, cluster.JSON, cluster.FleetVersion.WithKind(r.Kind()), cluster.Events(encoder(b, cluster.JSON), r.Collection()))
		b.Run("typed", func(b *testing.B) { objectHeaps(b, w, r.Len(), r.Typed(0), dropped) })
		b.Run("unstructured", func(b *testing.B) { objectHeaps(b, w, r.Len(), &unstructured.Unstructured{}, dropped) })
	})
}

// objectHeaps reports the heap of informers of objects like like.
func objectHeaps(b *testing.B, w *wire, n int, like cluster.Object, f managed) {
	for _, name := range onWire {
		b.Run(name, func(b *testing.B) {
			heaps(b, w, n, func() (<-chan struct{}, func(context.Context)) { return informerOf(b, w, name, like, f) })
		})
	}
}

func podHeaps(b *testing.B, form cluster.Form, owners int) {
	pods := cluster.NewPods(cluster.PodOptions{Count: wirePods(b), Owners: owners, ManagedFields: true})
	w := podWire(b, form, pods)
	contestants := map[managed][]string{kept: onWire, dropped: append(slices.Clip(onWire), transformed)}
	for _, f := range []managed{kept, dropped} {
		b.Run(string(f), func(b *testing.B) {
			for _, name := range contestants[f] {
				b.Run(name, func(b *testing.B) {
					heaps(b, w, pods.Len(), func() (<-chan struct{}, func(context.Context)) {
						i := wired(b, w.config(), name, f)
						return i.handle(func(*corev1.Pod) {}), i.run
					})
				})
			}
		})
	}
}

// BenchmarkInformer_HeapDecoded reports the live heap per Pod of informers whose objects a
// ListerWatcher of the user's has decoded: one of client-go's clients.
func BenchmarkInformer_HeapDecoded(b *testing.B) {
	pods := cluster.NewPods(cluster.PodOptions{Count: wirePods(b), ManagedFields: true})
	w := podWire(b, cluster.Protobuf, pods)
	for _, name := range []string{"flyball-channel", "flyball-clientgo", "client-go"} {
		b.Run(name, func(b *testing.B) {
			heaps(b, w, pods.Len(), func() (<-chan struct{}, func(context.Context)) {
				client, err := kubernetes.NewForConfig(w.config())
				if err != nil {
					b.Fatal(err)
				}
				core := client.CoreV1().RESTClient()
				lw := cache.ToListWatcherWithWatchListSemantics(cache.NewListWatchFromClient(core, "pods", "", fields.Everything()), core)
				i := onListWatch(b, name, lw)
				return i.handle(func(*corev1.Pod) {}), i.run
			})
		})
	}
}

// onListWatch returns a contestant on a ListerWatcher of client-go.
func onListWatch(b testing.TB, name string, lw cache.ListerWatcher) contestant {
	if name == "client-go" {
		return newClientGo(b, cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}))
	}
	i := informer.New(clientgo.NewListerWatcher[*corev1.Pod](lw), podKind, informer.Options{})
	if name == "flyball-clientgo" {
		return newClientGo(b, clientgo.NewSharedIndexInformer(i, clientgo.Options{}))
	}
	return newFlyballOf(b, i, informer.HandlerOptions{}, i.Run)
}

// leverHeaps are heaps of Pods of 1,000 owners by number of Pods, for each contestant and each
// lever: the growth of docs/memory.md. managedFields are on the wire and dropped by all.
func leverHeaps(b *testing.B) {
	for _, n := range []int{1000, 3000, 10_000, 30_000} {
		pods := cluster.NewPods(cluster.PodOptions{Count: n, ManagedFields: true})
		w := podWire(b, cluster.Protobuf, pods)
		for _, name := range slices.Concat(onWire, levers) {
			b.Run(fmt.Sprintf("pods-%d/%s", n, name), func(b *testing.B) {
				heaps(b, w, n, func() (<-chan struct{}, func(context.Context)) {
					i := wired(b, w.config(), name, dropped)
					return i.handle(func(*corev1.Pod) {}), i.run
				})
			})
		}
	}
}

// heaps reports the live heap per object of an informer that has stored n objects of w.
func heaps(b *testing.B, w *wire, n int, newInformer func() (synced <-chan struct{}, run func(context.Context))) {
	var heap float64
	for b.Loop() {
		before := liveHeap()
		done, run := newInformer()
		stop := running(run)
		<-done
		heap += float64(liveHeap()) - float64(before)
		stop()
	}
	b.ReportMetric(heap/float64(b.N*n), "B/object")
	b.ReportMetric(float64(w.bytes)/float64(n), "wire-B/object")
	b.ReportMetric(0, "ns/op")
	runtime.KeepAlive(w)
}

// BenchmarkInformer_UpdateBytes stores 20,000 Pods and then as many updates in random
// order from bytes: changes of readiness, as a kubelet reports them. Each contestant has a
// handler; managedFields are on the wire and dropped by all.
func BenchmarkInformer_UpdateBytes(b *testing.B) {
	for _, form := range wireForms {
		b.Run(form.name, func(b *testing.B) {
			pods := cluster.NewPods(cluster.PodOptions{Count: wirePods(b), ManagedFields: true})
			w := podWire(b, form.form, pods)
			for _, name := range onWire {
				b.Run(name, func(b *testing.B) { updatesOfBytes(b, w, pods, name) })
			}
		})
	}
}

func updatesOfBytes(b *testing.B, w *wire, pods *cluster.Pods, name string) {
	i := wired(b, w.config(), name, dropped)
	var awaited atomic.Pointer[string]
	seen := make(chan struct{}, 1)
	synced := i.handle(func(pod *corev1.Pod) {
		if last := awaited.Load(); last != nil && pod.ResourceVersion == *last {
			seen <- struct{}{}
		}
	})
	stop := started(i)
	defer stop()
	<-synced
	log := newChangeLog(encoder(b, w.form), pods)
	var cpu time.Duration
	var sum allocations
	for b.Loop() {
		b.StopTimer()
		frames, last := log.next(b, pods.Len())
		awaited.Store(&last)
		runtime.GC()
		used, before := cputime.Used(), allocated()
		b.StartTimer()

		w.changes <- frames
		<-seen

		b.StopTimer()
		cpu += cputime.Used() - used
		sum.add(before, allocated())
		b.StartTimer()
	}
	n := float64(b.N * pods.Len())
	b.ReportMetric(cpu.Seconds()*1e6/n, "cpu-us/update")
	b.ReportMetric(0, "ns/op")
	sum.report(b, "update", pods.Len())
}

// changeLog encodes updates of random Pods.
type changeLog struct {
	encoder *cluster.Encoder
	pods    *cluster.Pods
	version int64 // of the last update
	random  *rand.Rand
}

func newChangeLog(e *cluster.Encoder, pods *cluster.Pods) *changeLog {
	return &changeLog{encoder: e, pods: pods, version: pods.Version(), random: rand.New(rand.NewPCG(1, 2))}
}

// next returns the frames of n updates and the version of the last.
func (u *changeLog) next(b testing.TB, n int) (frames [][]byte, last string) {
	for range n {
		u.version++
		frame, err := u.encoder.Event(watch.Modified, u.pods.Update(u.random.IntN(u.pods.Len()), u.version))
		if err != nil {
			b.Fatal(err)
		}
		frames = append(frames, frame)
	}
	return frames, strconv.FormatInt(u.version, 10)
}
