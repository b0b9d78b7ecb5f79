// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"sync"

	"github.com/flyball-dev/flyball/informer/internal/fields"
)

// narrow remembers the informers of a factory that have ever kept only some
// fields, with the last of these. The zero narrow is empty.
type narrow[ID comparable] struct {
	mu struct {
		sync.Mutex
		sets map[ID]*fields.Set
	}
}

func (n *narrow[ID]) record(id ID, set *fields.Set) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.sets == nil {
		n.mu.sets = make(map[ID]*fields.Set)
	}
	n.mu.sets[id] = set
}

func (n *narrow[ID]) any() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.mu.sets) > 0
}

func (n *narrow[ID]) of(id ID) (*fields.Set, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	set, ok := n.mu.sets[id]
	return set, ok
}

func (n *narrow[ID]) ids() []ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]ID, 0, len(n.mu.sets))
	for id := range n.mu.sets {
		out = append(out, id)
	}
	return out
}
