// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"context"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/workqueue"
)

// documented returns the number that pattern's group finds in hack/tools/bench/RESULTS.md. The tests below hold what
// that page says and no machine changes: bytes and allocations.
func documented(t *testing.T, pattern string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)`+pattern).FindAllStringSubmatch(read(t, "hack/tools/bench/RESULTS.md"), -1)
	if len(found) != 1 {
		t.Fatalf("RESULTS.md has %d lines like %s, want one", len(found), pattern)
	}
	x, err := strconv.ParseFloat(found[0][1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestPerformance_QueueBytesPerKey_W12 measures as BenchmarkQueue_Bytes of hack/tools/bench does.
func TestPerformance_QueueBytesPerKey_W12(t *testing.T) {
	const million = 1_000_000
	keys := make([]types.NamespacedName, million)
	for i := range keys {
		keys[i] = types.NamespacedName{Namespace: "default", Name: strconv.Itoa(i)}
	}
	for _, c := range []struct {
		state string
		most  float64
		add   func(*workqueue.Queue[types.NamespacedName], types.NamespacedName)
	}{
		{"ready", 90, func(q *workqueue.Queue[types.NamespacedName], k types.NamespacedName) { q.Add(k) }},
		{"delayed", 106, func(q *workqueue.Queue[types.NamespacedName], k types.NamespacedName) { q.AddAfter(k, time.Hour) }},
	} {
		want := documented(t, `^\| `+c.state+` \| \*\*([0-9.]+) B\*\* \|`)
		before := heapAlloc()
		q := workqueue.New(workqueue.Options[types.NamespacedName]{})
		for _, k := range keys {
			c.add(q, k)
		}
		got := float64(heapAlloc()-before) / million
		q.ShutDown()
		if got > c.most {
			t.Errorf("a %s key takes %.1f B, want at most %.0f", c.state, got, c.most)
		}
		if got < want-0.5 || got > want+0.5 {
			t.Errorf("a %s key takes %.1f B; RESULTS.md says %.1f", c.state, got, want)
		}
	}
	runtime.KeepAlive(keys)
}

// TestPerformance_AllocationsPerKey counts what hack/tools/bench's rows of one key at a time and of bursts allocate once warm.
func TestPerformance_AllocationsPerKey(t *testing.T) {
	want := documented(t, `^Allocations per item, once warm: ours ([0-9.]+) in every row`)
	keys := make([]types.NamespacedName, 1000)
	for i := range keys {
		keys[i] = types.NamespacedName{Namespace: "default", Name: strconv.Itoa(i)}
	}
	for _, c := range []struct {
		row   string
		burst int
		add   func(*workqueue.Queue[types.NamespacedName], types.NamespacedName)
	}{
		{"Add, Get, Done", 1, func(q *workqueue.Queue[types.NamespacedName], k types.NamespacedName) { q.Add(k) }},
		{"Add, Get, Done in bursts of 1000", 1000, func(q *workqueue.Queue[types.NamespacedName], k types.NamespacedName) { q.Add(k) }},
		{"AddRateLimited, Get, Forget, Done in bursts of 1000", 1000, func(q *workqueue.Queue[types.NamespacedName], k types.NamespacedName) { q.AddRateLimited(k) }},
	} {
		q := workqueue.New(workqueue.Options[types.NamespacedName]{RateLimiter: workqueue.Exponential{Base: time.Nanosecond, Max: time.Microsecond}})
		got := testing.AllocsPerRun(20, func() {
			for _, k := range keys[:c.burst] {
				c.add(q, k)
			}
			for range c.burst {
				k, _ := q.Get()
				q.Forget(k)
				q.Done(k)
			}
		})
		q.ShutDown()
		if got > want*float64(c.burst) {
			t.Errorf("%s: %.1f allocations, RESULTS.md says %.0f per item", c.row, got, want)
		}
	}
}

// TestPerformance_AllocationsPerUpdate counts what an update costs from the watch to handlers of every event, with an index
// function that allocates its answer, as in hack/tools/bench.
func TestPerformance_AllocationsPerUpdate(t *testing.T) {
	const objects, updates = 2000, 40_000
	for _, c := range []struct {
		handlers int
		want     float64
	}{
		{1, documented(t, `^\| ours \| [^|]*\| 1\.00 \| [0-9]+ B, ([0-9.]+) \|`)},
		{10, documented(t, `^\| ours \|[^|]*\|[^|]*\|[^|]*\|[^|]*\| 1\.00 \| [0-9]+ B, ([0-9.]+) \|`)},
	} {
		feed := &updateFeed{more: make(chan []*corev1.ConfigMap)}
		for i := range objects {
			feed.list = append(feed.list, configMapAt(i, i+1))
		}
		maps := informer.New[*corev1.ConfigMap](feed, corev1.SchemeGroupVersion.WithKind("ConfigMap"), informer.Options{})
		if err := maps.AddIndex("name", func(m *corev1.ConfigMap) []string { return []string{m.Name} }); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range c.handlers {
			_, err := maps.AddHandler(func(e kube.Event[*corev1.ConfigMap]) { wg.Done() }, informer.HandlerOptions{EveryEvent: true, BacklogBytes: -1})
			if err != nil {
				t.Fatal(err)
			}
		}
		wg.Add(c.handlers * objects)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- maps.Run(ctx) }()
		wg.Wait()
		var batches [2][]*corev1.ConfigMap // the first warms
		for b := range batches {
			for i := range updates {
				batches[b] = append(batches[b], configMapAt(i%objects, objects+b*updates+i+1))
			}
		}
		var before, after runtime.MemStats
		for _, batch := range batches {
			wg.Add(c.handlers * updates)
			runtime.ReadMemStats(&before)
			feed.more <- batch
			wg.Wait()
			runtime.ReadMemStats(&after)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		got := float64(after.Mallocs-before.Mallocs) / updates
		if got > c.want+0.5 {
			t.Errorf("%d handlers: %.2f allocations per update; RESULTS.md says %.2f", c.handlers, got, c.want)
		}
	}
}

func configMapAt(i, version int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: strconv.Itoa(i), UID: types.UID(strconv.Itoa(i)), ResourceVersion: strconv.Itoa(version),
	}}
}

// updateFeed is a server in memory of one list, and one watch that brings more.
type updateFeed struct {
	list []*corev1.ConfigMap
	more chan []*corev1.ConfigMap
}

func (f *updateFeed) IsWatchListSemanticsUnSupported() bool { return true }

func (f *updateFeed) List(context.Context, listwatch.ListOptions) (listwatch.Page[*corev1.ConfigMap], error) {
	page := listwatch.Page[*corev1.ConfigMap]{ResourceVersion: strconv.Itoa(len(f.list))}
	for _, m := range f.list {
		page.Items = append(page.Items, configMapItem(m))
	}
	return page, nil
}

func (f *updateFeed) Watch(ctx context.Context, _ listwatch.WatchOptions) (listwatch.Stream[*corev1.ConfigMap], error) {
	return &updateStream{more: f.more, ended: ctx.Done()}, nil
}

type updateStream struct {
	more  chan []*corev1.ConfigMap
	ended <-chan struct{}
	batch []*corev1.ConfigMap
}

func (s *updateStream) Next() (listwatch.Frame[*corev1.ConfigMap], error) {
	if len(s.batch) == 0 {
		select {
		case s.batch = <-s.more:
		case <-s.ended:
			return listwatch.Frame[*corev1.ConfigMap]{}, context.Canceled
		}
	}
	m := s.batch[0]
	s.batch = s.batch[1:]
	return listwatch.Frame[*corev1.ConfigMap]{Type: listwatch.FrameModified, Item: configMapItem(m)}, nil
}

func (s *updateStream) Close() error { return nil }

func configMapItem(m *corev1.ConfigMap) listwatch.Item[*corev1.ConfigMap] {
	return listwatch.Item[*corev1.ConfigMap]{Key: kube.KeyOf(m), UID: m.UID, ResourceVersion: m.ResourceVersion, Object: m}
}

func heapAlloc() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
