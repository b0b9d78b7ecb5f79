// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package keyed draws random numbers that depend on a seed and on what they are
// drawn for, so that one draw moves no other.
package keyed

import (
	"hash/fnv"
	"math/rand/v2"
)

// Random is a source of its own for one draw: what is drawn depends on the
// seed and on what it is drawn for, not on what was drawn before.
func Random(seed uint64, what, key string, ordinal int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(what))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(key))
	return rand.New(rand.NewPCG(seed, h.Sum64()+uint64(ordinal)))
}
