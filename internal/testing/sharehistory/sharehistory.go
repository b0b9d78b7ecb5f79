// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharehistory checks what replicas that share objects have written, afterwards.
//
//	events of Leases ──▶ who held each shard, from which revision on ──┐
//	events of objects, each written by a replica ──────────────────────┴▶ Check
//
// A server's revisions order all writes. A write of an object is right if the Lease of its shard named the
// replica at its revision. Everything is kept in memory, and safe for concurrent use.
package sharehistory

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
)

// History is that of one operator.
type History struct {
	// ID is the name of the operator's Leases, and Count how many shards there are.
	ID    string
	Count int

	mu struct {
		sync.Mutex
		holders map[int][]held
		writes  []write
	}
}

type held struct {
	from   kube.Version
	holder string // empty: nobody
}

type write struct {
	at      kube.Version
	shard   int
	replica string
	what    string
}

// Lease records that the Lease of that name has a holder since a version, or nobody.
func (h *History) Lease(name, holder string, version kube.Version) {
	var shard int
	if n, err := fmt.Sscanf(strings.TrimPrefix(name, h.ID+"-shard-")+"\n", "%d\n", &shard); n != 1 || err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.holders == nil {
		h.mu.holders = map[int][]held{}
	}
	h.mu.holders[shard] = append(h.mu.holders[shard], held{version, holder})
}

// Write records that a replica, by the identity that it was given, has written an object. value is what
// decides the object's shard.
func (h *History) Write(value, replica, what string, version kube.Version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.writes = append(h.mu.writes, write{version, shards.Of(value, h.Count), replica, what})
}

// Check returns the writes that were made by a replica that did not hold the shard, and how many writes
// there were in all.
func (h *History) Check() (wrong []string, all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sortLocked()
	for _, w := range h.mu.writes {
		states := h.mu.holders[w.shard]
		next := sort.Search(len(states), func(i int) bool { return states[i].from > w.at })
		holder := ""
		if next > 0 {
			holder = states[next-1].holder
		}
		if !strings.HasPrefix(holder, h.ID+"-"+w.replica+"-") {
			wrong = append(wrong, fmt.Sprintf("%s at version %s by %s, when %q held shard %d", w.what, w.at, w.replica, holder, w.shard))
		}
	}
	return wrong, len(h.mu.writes)
}

// Moves returns how often a shard has come to another replica than before.
func (h *History) Moves() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sortLocked()
	for _, states := range h.mu.holders {
		last := ""
		for _, s := range states {
			if s.holder != "" && s.holder != last {
				n++
				last = s.holder
			}
		}
	}
	return n
}

// sortLocked brings the holders of each shard into the order of versions.
func (h *History) sortLocked() {
	for _, states := range h.mu.holders {
		slices.SortFunc(states, func(a, b held) int { return cmp.Compare(a.from, b.from) })
	}
}
