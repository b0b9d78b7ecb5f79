// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"strings"

	"github.com/flyball-dev/flyball/informer/internal/headroom"
)

// Memory is what the objects of a factory take, in bytes.
type Memory struct {
	// Kinds has each informer, in the order of the requests.
	Kinds []KindMemory
	// Shared is what the objects have in common. It counts once, for no kind:
	// parts may be shared between kinds.
	Shared int64
	// Budget is Options.MemoryBudget, or its default; 0: no bound.
	Budget int64
}

// KindMemory is what the objects of one informer take.
type KindMemory struct {
	Kind    string
	Objects int
	Heap    int64 // as in Snapshot
}

// Memory returns what the objects take now. It walks the table of shared parts:
// call it to show it, not for each event.
func (f *SharedInformerFactory) Memory() Memory {
	m := Memory{Shared: f.resolver.Server.Parts().Stats().Live, Budget: f.resolver.Server.Memory.Limit()}
	for _, c := range f.cores() {
		s := c.indexer.Snapshot()
		m.Kinds = append(m.Kinds, KindMemory{Kind: c.gvk().Kind, Objects: s.Objects, Heap: s.Heap})
	}
	return m
}

// String returns one line, such as "3 Website 4100 B, 6 Deployment 18 kB, shared
// 11 kB".
func (m Memory) String() string {
	var parts []string
	for _, k := range m.Kinds {
		parts = append(parts, fmt.Sprintf("%d %s %s", k.Objects, k.Kind, headroom.Text(k.Heap)))
	}
	parts = append(parts, "shared "+headroom.Text(m.Shared))
	if m.Budget > 0 {
		parts = append(parts, "budget "+headroom.Text(m.Budget))
	}
	return strings.Join(parts, ", ")
}
