// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"strconv"

	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
)

// Options of an adapter. With the zero value handlers are given what client-go
// gives them.
type Options struct {
	// StripManagedFields leaves managedFields out of the objects, where nobody else
	// who shares the informer has them kept. They can be a third of an object.
	StripManagedFields bool
	// OnlyDifferences has a list after the first one give handlers what differs.
	// Without it they are given each unchanged object too, as an update from a state
	// to itself: controllers that drop a key after a failed write count on that.
	OnlyDifferences bool
	// BacklogBytes bound what waits for a handler before consecutive updates of an
	// object merge, as in informer.HandlerOptions. 0: 64 MiB. Negative: no bound, as
	// in client-go.
	BacklogBytes int64
	// Identifier under which Metrics publishes the informer, from
	// cache.InformerName.WithResource. Zero: the informer is not published.
	Identifier cache.InformerNameAndResource
	// Metrics publishes the informer. Nil: it is not published. The provider of
	// cache.SetInformerMetricsProvider cannot be read, so give it here as well.
	Metrics cache.InformerMetricsProvider
}

// publish has the informer's metrics set as it works.
func publish[T informer.Object](i *informer.SharedInformer[T], opts Options) {
	id := opts.Identifier
	if opts.Metrics == nil || !id.Reserved() {
		return
	}
	queued := opts.Metrics.NewQueuedItemMetric(id)
	latency := opts.Metrics.NewProcessingLatencyMetric(id)
	version := opts.Metrics.NewStoreResourceVersionMetric(id)
	i.OnBatch(func(r informer.BatchReport) {
		if !id.Reserved() {
			return // the name was released
		}
		queued.Set(float64(r.Waiting))
		if r.Deltas > 0 {
			latency.Observe(r.Took.Seconds())
		}
		if v := i.Reached(); v != 0 {
			version.Set(shownVersion(v))
		}
	})
}

// shownVersion is v as client-go publishes it: its last 15 digits, which a
// float64 holds exactly.
func shownVersion(v informer.Version) float64 {
	text := strconv.FormatUint(uint64(v), 10)
	n, _ := strconv.ParseUint(text[max(0, len(text)-15):], 10, 64)
	return float64(n)
}
