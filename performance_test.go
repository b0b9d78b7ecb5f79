// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package flyball_test

import (
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/workqueue"
)

// documented returns the number that pattern's group finds in docs/performance.md. The tests below hold what that page says
// and no machine changes: bytes and allocations.
func documented(t *testing.T, pattern string) float64 {
	t.Helper()
	page, err := os.ReadFile("docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)`+pattern).FindAllSubmatch(page, -1)
	if len(found) != 1 {
		t.Fatalf("docs/performance.md has %d lines like %s, want one", len(found), pattern)
	}
	x, err := strconv.ParseFloat(string(found[0][1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestPerformance_QueueBytesPerKey_W12 measures as BenchmarkQueue_Bytes of hack/bench does.
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
		q := workqueue.New[types.NamespacedName](workqueue.Options{})
		for _, k := range keys {
			c.add(q, k)
		}
		got := float64(heapAlloc()-before) / million
		q.ShutDown()
		if got > c.most {
			t.Errorf("a %s key takes %.1f B, want at most %.0f", c.state, got, c.most)
		}
		if got < want-0.5 || got > want+0.5 {
			t.Errorf("a %s key takes %.1f B; docs/performance.md says %.1f", c.state, got, want)
		}
	}
	runtime.KeepAlive(keys)
}

func heapAlloc() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
