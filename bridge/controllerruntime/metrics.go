// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/metrics"
)

// collector shows the informers of all caches that run, in controller-runtime's registry, which is one per process. The first
// cache registers it, others find it there.
type collector struct {
	prometheus.Collector
	mu struct {
		sync.Mutex
		running map[*kinds]struct{}
	}
}

// registeredCollector returns the collector in controller-runtime's registry. If that refuses it, its metrics are missing.
func registeredCollector() *collector {
	c := &collector{}
	c.mu.running = make(map[*kinds]struct{})
	c.Collector = metrics.NewInformers(c.read)
	return registered(c)
}

// show shows the informers of a cache, until hide is called.
func (c *collector) show(k *kinds) (hide func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.running[k] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.mu.running, k)
	}
}

func (c *collector) read() []state.Informer {
	c.mu.Lock()
	running := slices.Collect(maps.Keys(c.mu.running))
	c.mu.Unlock()
	var all []state.Informer
	for _, k := range running {
		all = append(all, k.factory.Snapshot()...)
	}
	return all
}
