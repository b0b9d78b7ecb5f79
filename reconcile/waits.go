// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import "sync"

// waits are the keys that wait for the cache after a conflict.
type waits[K comparable] struct {
	mu struct {
		sync.Mutex
		stops map[K]func()
	}
}

func (w *waits[K]) begin(key K, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.stops == nil {
		w.mu.stops = make(map[K]func())
	}
	w.mu.stops[key] = stop
}

// end ends key's wait, if it waits.
func (w *waits[K]) end(key K) {
	w.mu.Lock()
	stop := w.mu.stops[key]
	delete(w.mu.stops, key)
	w.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (w *waits[K]) endAll() {
	w.mu.Lock()
	stops := w.mu.stops
	w.mu.stops = nil
	w.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}
