// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/sharding"
)

// However many prefixes names are generated from, none of them has the same draw twice,
// and few are remembered.
func TestAllotter_NamesAreDrawnOnce(t *testing.T) {
	a, last := NewAllotter(0), 0
	for n := range 3 * maxPrefixes {
		a.Name(fmt.Sprintf("p%d-", n))
		draw := a.draw("same-")
		if draw <= last {
			t.Fatalf("same- has draw %d after %d", draw, last)
		}
		last = draw
		if len(a.names) > maxPrefixes {
			t.Fatalf("%d prefixes are remembered, want at most %d", len(a.names), maxPrefixes)
		}
	}
}

// Shards are balanced: they are ranges of the hash of the UID.
func TestAllotter_UIDsAreSpreadOverShards(t *testing.T) {
	const shards, objects = 16, 1600
	for _, seed := range []uint64{0, 1, 1 << 40} {
		a, in := NewAllotter(seed), map[byte]int{}
		for range objects {
			in[sharding.HashField(string(a.UID()))[0]]++
		}
		for shard, n := range in {
			if len(in) != shards || n < objects/shards/2 || n > objects/shards*2 {
				t.Errorf("seed %d: shard %c of %d has %d of %d objects, want about one in %d", seed,
					shard, len(in), n, objects, shards)
			}
		}
	}
}

func TestAllotter_ResumesAfterWhatWasHandedOut(t *testing.T) {
	a, given := NewAllotter(7), map[string]bool{}
	hand := func() {
		for range 20 {
			for _, each := range []string{string(a.UID()), a.ServiceAddress(), fmt.Sprint(a.NodePort()), a.Name("web-")} {
				if given[each] {
					t.Errorf("%s was handed out twice", each)
				}
				given[each] = true
			}
		}
	}
	hand()
	counters := a.Counters()
	if want := (Counters{20, 20, 20}); counters != want {
		t.Errorf("counted %v, want %v", counters, want)
	}
	a = NewAllotter(7)
	a.Resume(counters, 20)
	hand()
	if got, want := NewAllotter(7).Name("web-"), NewAllotter(7).Name("web-"); got != want {
		t.Errorf("one seed drew %s and %s", got, want)
	}
}
