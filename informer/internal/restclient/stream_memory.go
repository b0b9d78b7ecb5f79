// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// streamMemory is which kinds a server gives no streaming lists of, so that
// all scopes of a kind learn it from one. Ready as its zero value, safe for
// concurrent use. It has an entry per kind at most.
type streamMemory struct {
	mu struct {
		sync.Mutex
		paged map[schema.GroupKind]time.Time
	}
}

// Remember that kind is to be listed by pages until then. first: it is news.
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

// Until is how long kind is listed by pages; zero or past: it is not.
func (m *streamMemory) Until(kind schema.GroupKind) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.paged[kind]
}
