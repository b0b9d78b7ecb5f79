// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Report is the result of a soak.
type Report struct {
	Seed                              uint64
	Took                              time.Duration
	Kills, Compactions, Outages, Cuts int
	Writes, Events                    uint64
	// Relists of all informers, by reason.
	Relists map[string]int
	// Watches is the number of opened watches.
	Watches int
	// Recoveries are, for each fault, the times from its end until the caches equalled the
	// server.
	Recoveries []time.Duration
	// HeapBefore and HeapAfter are the live heap in bytes, before the first and after the
	// last fault.
	HeapBefore, HeapAfter int64
	Err                   error

	writes *atomic.Uint64
}

// count adds the figures of the informers.
func (r *Report) count(s *soak) {
	r.Writes = r.writes.Load()
	for _, f := range s.followers {
		r.Events += f.counted()
	}
	r.Relists = map[string]int{}
	for _, informer := range s.factory.Snapshot() {
		for _, scope := range informer.Scopes {
			r.Watches += scope.Watches
			for reason, n := range scope.Relists {
				r.Relists[reason] += n
			}
		}
	}
}

// String returns the report as one line.
func (r Report) String() string {
	verdict := "every cache and handler equals the server, nothing is left behind"
	if r.Err != nil {
		verdict = "FAILED"
	}
	var relists []string
	for _, reason := range slices.Sorted(maps.Keys(r.Relists)) {
		relists = append(relists, fmt.Sprintf("%s %d", reason, r.Relists[reason]))
	}
	most, median := longest(r.Recoveries)
	return fmt.Sprintf("soak, seed %d, %v: %s; %d kills, %d compactions, %d outages and %d cuts of the network; "+
		"%d writes, %d events, %d watches, relists: %s; recovery %v at most, median %v; live heap %.1f MiB, then %.1f",
		r.Seed, r.Took.Round(time.Second), verdict, r.Kills, r.Compactions, r.Outages, r.Cuts,
		r.Writes, r.Events, r.Watches, strings.Join(relists, ", "),
		most.Round(time.Millisecond), median.Round(time.Millisecond),
		float64(r.HeapBefore)/(1<<20), float64(r.HeapAfter)/(1<<20))
}
