// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package memo remembers what need not be asked or done again.
package memo

import "sync"

// most bounds a Memo.
const most = 10_000

// Memo remembers one value of each key. When it is full, it forgets all: that costs further
// requests. It is ready to use as its zero value, and safe for concurrent use.
type Memo[K, V comparable] struct {
	mu struct {
		sync.Mutex
		of map[K]V
	}
}

// Has reports whether value is that of key.
func (m *Memo[K, V]) Has(key K, value V) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	is, ok := m.mu.of[key]
	return ok && is == value
}

// Put makes value that of key.
func (m *Memo[K, V]) Put(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, has := m.mu.of[key]; m.mu.of == nil || !has && len(m.mu.of) >= most {
		m.mu.of = make(map[K]V)
	}
	m.mu.of[key] = value
}
