// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lists that arrive together and are answered one after the other.
func BenchmarkPacer_ListsInLine(b *testing.B) {
	for _, lists := range []int{1000, 4000} {
		b.Run(fmt.Sprint(lists), func(b *testing.B) {
			now := time.Unix(0, 0)
			kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
			for b.Loop() {
				g := newPacerState(DefaultConcurrentLists)
				for t := range lists {
					g.arrive(ticket(t+1), Ask{Rank: RankFirst, Kind: kind, List: true, since: now})
				}
				answered := 0
				for admitted := g.admit(now); len(admitted) > 0; {
					t := admitted[0]
					admitted = admitted[1:]
					g.replied(t, kind, reply{verdict: verdictServed, sent: now}, now)
					g.leave(t)
					admitted = append(admitted, g.admit(now)...)
					answered++
				}
				if answered != lists {
					b.Fatalf("%d of %d lists were answered", answered, lists)
				}
			}
		})
	}
}
