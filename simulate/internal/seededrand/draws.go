// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package seededrand

import (
	"sync"
	"time"
)

// Draws are random numbers by purpose: each name has its own sequence, so that draws of
// one name do not affect others. Draws is safe for concurrent use.
type Draws struct {
	seed uint64
	mu   struct {
		sync.Mutex
		nth map[string]uint64
	}
}

func NewDraws(seed uint64) *Draws {
	d := &Draws{seed: seed}
	d.mu.nth = map[string]uint64{}
	return d
}

// Next returns the next number of a name.
func (d *Draws) Next(name string) uint64 {
	d.mu.Lock()
	n := d.mu.nth[name]
	d.mu.nth[name] = n + 1
	d.mu.Unlock()
	return Drawn(d.seed, name, n)
}

// Float returns the next number of a name, in [0, 1).
func (d *Draws) Float(name string) float64 { return Unit(d.Next(name)) }

// UpTo returns the next duration of a name, in [1ns, most].
func (d *Draws) UpTo(name string, most time.Duration) time.Duration {
	return 1 + time.Duration(d.Next(name)%uint64(max(most, 1)))
}

// Drawn returns the nth number of a name under a seed.
func Drawn(seed uint64, name string, nth uint64) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return mixed(mixed(seed^h) + nth)
}

// mixed is a step of SplitMix64.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func Unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }
