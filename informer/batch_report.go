// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"time"
)

// BatchReport says what an informer has just done, for metrics.
type BatchReport struct {
	Deltas  int           // that were stored
	Took    time.Duration // from taking them to the backlogs of the handlers
	Waiting int           // deltas that wait
}

// OnBatch has f called each time a batch of changes has been stored and is in
// the backlogs of the handlers. f is called from the informer's goroutine, so it
// must not block. It is the kind's, and stays when this handle is released.
func (i *SharedInformer[T]) OnBatch(f func(BatchReport)) {
	i.core.mu.Lock()
	defer i.core.mu.Unlock()
	i.core.mu.onBatch = append(slices.Clone(i.core.mu.onBatch), f)
}

func (c *core) reportBatch(deltas int, began time.Time) {
	c.mu.Lock()
	observers := c.mu.onBatch
	c.mu.Unlock()
	if len(observers) == 0 {
		return
	}
	r := BatchReport{Deltas: deltas, Took: time.Since(began), Waiting: c.fifo.Len()}
	for _, f := range observers {
		f(r)
	}
}
