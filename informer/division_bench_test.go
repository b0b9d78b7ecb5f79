// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/shards"
)

// crowd answers requests for many Pods, in protobuf, without a connection.
type crowd struct {
	b       testing.TB
	pods    []corev1.Pod
	selects bool
	events  func() []byte // of a watch; nil: none
}

func newCrowd(b testing.TB, n int, selects bool) *crowd {
	c := &crowd{b: b, selects: selects}
	is := true
	for i := range n {
		pod := fixture.SeedPod(fmt.Sprint("web-6c5f7d9b8-", i))
		pod.UID, pod.ResourceVersion = types.UID(fmt.Sprintf("3f2b7c1e-9f1d-4a68-8f0e-%012x", i)), strconv.Itoa(1000+i)
		pod.Namespace = fmt.Sprint("team-", i%500)
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: types.UID(fmt.Sprint("rs-", i/4)), Controller: &is}}
		pod.Annotations = map[string]string{"checksum": strings.Repeat(fmt.Sprintf("%08x", i*2654435761), 8)}
		for e := range 12 {
			pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", e), Value: fmt.Sprint("value-", e, "-", i)})
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}
		c.pods = append(c.pods, *pod)
	}
	return c
}

// RoundTrip implements http.RoundTripper.
func (c *crowd) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	peer, q := fixture.ProtobufPeer(clientscheme.Scheme), r.URL.Query()
	answer.Header.Set("Content-Type", peer.Media)
	switch {
	case r.URL.Path == "/api/v1":
		answer.Header.Set("Content-Type", "application/json")
		answer.Body = io.NopCloser(strings.NewReader(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`))
	case q.Get("watch") != "":
		answer.Header.Set("Content-Type", peer.Media+";stream=watch")
		answer.Body = &eventsBody{ctx: r.Context(), next: c.events}
	default:
		selector := selectorOf(q)
		if !c.selects {
			selector = nil
		}
		list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		list.ResourceVersion = strconv.Itoa(1000 + len(c.pods))
		if selector != nil {
			list.ShardInfo = &metav1.ShardInfo{Selector: selector.String()}
		}
		from, _ := strconv.Atoi(q.Get("continue"))
		limit, _ := strconv.Atoi(q.Get("limit"))
		for i := from; i < len(c.pods); i++ {
			if len(list.Items) == limit {
				list.Continue = strconv.Itoa(i)
				break
			}
			is := selector == nil
			if !is {
				is, _ = selector.Matches(&c.pods[i])
			}
			if is {
				list.Items = append(list.Items, c.pods[i])
			}
		}
		answer.Body = io.NopCloser(bytes.NewReader(peer.Encode(c.b, list)))
	}
	return answer, nil
}

// eventsBody is the body of a watch.
type eventsBody struct {
	ctx  context.Context
	next func() []byte
	rest []byte
}

func (e *eventsBody) Read(p []byte) (int, error) {
	if len(e.rest) == 0 && e.next != nil {
		e.rest = e.next()
	}
	if len(e.rest) == 0 {
		<-e.ctx.Done()
		return 0, e.ctx.Err()
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *eventsBody) Close() error { return nil }

// factoryOf runs a factory on c whose informer of Pods holds the given shards of four; nil: all.
func (c *crowd) factoryOf(by string, held ...int) (f *SharedInformerFactory, stop func()) {
	f, err := NewSharedInformerFactory(&rest.Config{Host: "http://memory", Transport: c}, clientscheme.Scheme, Options{PagedLists: true, MemoryBudget: -1})
	if err != nil {
		c.b.Fatal(err)
	}
	if held != nil {
		if err := f.Divide(4, func(schema.GroupKind) string { return by }); err != nil {
			c.b.Fatal(err)
		}
		if err := f.HoldShards(held...); err != nil {
			c.b.Fatal(err)
		}
	}
	pods := For[*corev1.Pod](f)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	if held != nil {
		err = f.AwaitShards(ctx, held...)
	} else {
		_, err = pods.WaitForSync(ctx)
	}
	if err != nil {
		c.b.Fatal(err)
	}
	return f, func() {
		cancel()
		<-done
	}
}

func heapNow() float64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// The heap of an informer of 100,000 Pods that holds one of four shards, as a part of that of one
// that holds all.
func BenchmarkDivision_Heap(b *testing.B) {
	const objects = 100_000
	heapOf := func(selects bool, by string, held ...int) (bytes float64) {
		c := newCrowd(b, objects, selects)
		before := heapNow()
		f, stop := c.factoryOf(by, held...)
		bytes = heapNow() - before
		runtime.KeepAlive(f)
		runtime.KeepAlive(c)
		stop()
		return bytes
	}
	for b.Loop() {
		whole := heapOf(true, "")
		b.ReportMetric(whole/objects, "B/object")
		b.ReportMetric(heapOf(true, "uid", 0)/whole, "server/whole")
		b.ReportMetric(heapOf(false, "uid", 0)/whole, "wire/whole")
		b.ReportMetric(heapOf(false, "owner", 0)/whole, "owner/whole")
	}
}

// The cost of an event that is dropped because its object is of another shard, from the connection
// on, and of one that is stored.
func BenchmarkDivision_Event(b *testing.B) {
	for _, c := range []struct {
		name, by string
		held     []int
		foreign  bool
	}{{"held/uid", "uid", []int{0, 1, 2, 3}, false}, {"dropped/uid", "uid", []int{0}, true}, {"dropped/owner", "owner", []int{0}, true}} {
		b.Run(c.name, func(b *testing.B) {
			crowd := newCrowd(b, 1, false)
			var frames [][]byte
			version := 10_000
			for i := 0; len(frames) < 64; i++ {
				pod := crowd.pods[0].DeepCopy()
				pod.Name, pod.UID = fmt.Sprint("event-", i), types.UID(fmt.Sprint("event-", i))
				pod.OwnerReferences[0].UID = pod.UID
				if foreign := shardOfFour(string(pod.UID)) != 0; foreign == c.foreign {
					version++
					pod.ResourceVersion = strconv.Itoa(version)
					frames = append(frames, fixture.ProtobufPeer(clientscheme.Scheme).Frame(b, listwatch.FrameModified, pod))
				}
			}
			together := bytes.Join(frames, nil)
			sent, events := 0, make(chan []byte, 1)
			crowd.events = func() []byte { return <-events }
			f, stop := crowd.factoryOf(c.by, c.held...)
			b.SetBytes(int64(len(together) / len(frames)))
			b.ReportAllocs()
			for b.Loop() {
				if sent++; sent%len(frames) == 1 {
					events <- together
				}
			}
			runtime.KeepAlive(f)
			close(events)
			stop()
		})
	}
}

func shardOfFour(value string) int { return shards.Of(value, 4) }
