// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"strconv"

	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// Options of an adapter. With the zero value, handlers receive what client-go
// delivers.
type Options struct {
	// StripManagedFields drops managedFields from the objects, unless another
	// user of the informer keeps them. They can be a third of an object.
	StripManagedFields bool
	// OnlyDifferences makes lists after the first deliver only what differs.
	// Otherwise handlers also receive unchanged objects, as updates to the same
	// state; controllers that drop a key after a failed write depend on that.
	OnlyDifferences bool
	// BacklogBytes bounds a handler's backlog before consecutive updates of an
	// object merge, as in informer.HandlerOptions. 0: 64 MiB. Negative: no
	// bound, as in client-go.
	BacklogBytes int64
	// Identifier under which Metrics publishes the informer, from
	// cache.InformerName.WithResource. Zero: not published.
	Identifier cache.InformerNameAndResource
	// Metrics publishes the informer. Nil: not published. Set it here as well,
	// because the provider of cache.SetInformerMetricsProvider cannot be read.
	Metrics cache.InformerMetricsProvider
}

// publish sets the informer's metrics after each batch.
func publish[T kube.Object](i *informer.SharedInformer[T], opts Options) {
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

// shownVersion returns v as client-go publishes it: the last 15 digits, which
// fit a float64 exactly.
func shownVersion(v kube.Version) float64 {
	text := strconv.FormatUint(uint64(v), 10)
	n, _ := strconv.ParseUint(text[max(0, len(text)-15):], 10, 64)
	return float64(n)
}
