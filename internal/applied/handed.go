// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import "sync"

// maxHanded bounds a Handed. When it is full, it forgets all: that costs further requests.
const maxHanded = 10_000

// Handed remembers to which applies fields have been handed over. The zero Handed is empty.
type Handed struct {
	mu struct {
		sync.Mutex
		to map[Key]struct{}
	}
}

// Has reports whether fields have been handed over to the apply of key.
func (h *Handed) Has(key Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, has := h.mu.to[key]
	return has
}

// Add remembers that fields have been handed over to the apply of key.
func (h *Handed) Add(key Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.to == nil || len(h.mu.to) >= maxHanded {
		h.mu.to = make(map[Key]struct{})
	}
	h.mu.to[key] = struct{}{}
}
