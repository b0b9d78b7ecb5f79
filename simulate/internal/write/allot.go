// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
	"github.com/flyball-dev/flyball/simulate/internal/validation"
)

// maxPrefixes is for how many prefixes of names the Allotter remembers how often they
// were asked for.
const maxPrefixes = 4096

// Allotter hands out identities. It is safe for concurrent use, and its lock is a leaf.
type Allotter struct {
	seed uint64

	mu       sync.Mutex
	counters Counters
	names    map[string]int // names of each prefix, since named was last raised
	named    int            // names of one prefix that may have been drawn before, at most
}

// Counters are how many UIDs, addresses and ports were handed out.
type Counters struct{ UIDs, Addresses, Ports int }

// NewAllotter returns an Allotter that draws names from seed.
func NewAllotter(seed uint64) *Allotter { return &Allotter{seed: seed, names: map[string]int{}} }

// Counters returns how much was handed out so far.
func (a *Allotter) Counters() Counters {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counters
}

// Resume continues after what was handed out before a restart. At most named names of one
// prefix were drawn.
func (a *Allotter) Resume(given Counters, named int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counters, a.named = given, named
}

// UID returns a UID that no other object has: a counter, behind digits that follow from it and
// the seed. Shards of a server (KEP-5866) are ranges of a UID's FNV-1a hash, whose upper bits
// hardly depend on the last digits.
func (a *Allotter) UID() types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counters.UIDs++
	var b [36]byte
	copy(b[:], "00000000-0000-4000-8000-000000000000")
	drawn := seededrand.Drawn(a.seed, "uid", uint64(a.counters.UIDs))
	digits(b[:8], drawn>>32)
	digits(b[24:], uint64(a.counters.UIDs))
	return types.UID(b[:])
}

// digits writes n in hexadecimal digits, the last ones if there are more.
func digits(to []byte, n uint64) {
	for i := len(to) - 1; i >= 0; i, n = i-1, n/16 {
		to[i] = "0123456789abcdef"[n%16]
	}
}

const (
	nameLetters = "bcdfghjklmnpqrstvwxz2456789"
	nameSuffix  = 5
	longestBase = 63 - nameSuffix
)

// Name returns prefix with five characters that follow from the seed, the prefix and how
// many names it was given before.
func (a *Allotter) Name(prefix string) string {
	if len(prefix) > longestBase {
		prefix = prefix[:longestBase]
	}
	draw := seededrand.Random(a.seed, "name", prefix, a.draw(prefix))
	var b strings.Builder
	b.WriteString(prefix)
	for range nameSuffix {
		b.WriteByte(nameLetters[draw.IntN(len(nameLetters))])
	}
	return b.String()
}

// draw numbers the names of a prefix. No number comes twice.
func (a *Allotter) draw(prefix string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.names[prefix]; !known && len(a.names) >= maxPrefixes {
		// Forget the prefixes, and continue each of them after the largest number of any.
		a.named += slices.Max(slices.Collect(maps.Values(a.names)))
		clear(a.names)
	}
	a.names[prefix]++
	return a.named + a.names[prefix]
}

const (
	// serviceNetwork is the address at which those of Services begin.
	serviceNetwork = "10.96.0.0"
	// reserved is how many of the first addresses belong to the cluster itself.
	reserved = 9
)

// ServiceAddress returns the next address for a Service.
func (a *Allotter) ServiceAddress() string {
	a.mu.Lock()
	a.counters.Addresses++
	n := a.counters.Addresses + reserved
	a.mu.Unlock()
	base := netip.MustParseAddr(serviceNetwork).As4()
	return netip.AddrFrom4([4]byte{base[0], base[1] + byte(n>>16), byte(n >> 8), byte(n)}).String()
}

// ServerAddress returns the address of the Service default/kubernetes: the first one.
func ServerAddress() string { return netip.MustParseAddr(serviceNetwork).Next().String() }

// NodePort returns the next port of all nodes for a Service.
func (a *Allotter) NodePort() int32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counters.Ports++
	return validation.FirstNodePort + int32(a.counters.Ports%validation.NodePorts)
}
