// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// streamMemory records the kinds for which a server does not stream lists, for
// all scopes of a kind. The zero value is ready to use. Safe for concurrent
// use. It has at most one entry per kind.
type streamMemory struct {
	mu struct {
		sync.Mutex
		paged map[schema.GroupKind]time.Time
	}
}

// Remember records that lists of kind are paged until then. first: this is new.
func (m *streamMemory) Remember(kind schema.GroupKind, now, until time.Time) (first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.paged == nil {
		m.mu.paged = make(map[schema.GroupKind]time.Time)
	}
	first = !now.Before(m.mu.paged[kind])
	if until.After(m.mu.paged[kind]) {
		m.mu.paged[kind] = until
	}
	return first
}

// Until returns until when lists of kind are paged; zero or past: they are not.
func (m *streamMemory) Until(kind schema.GroupKind) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.paged[kind]
}
