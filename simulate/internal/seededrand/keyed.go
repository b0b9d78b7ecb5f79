// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package seededrand

import (
	"hash/fnv"
	"math/rand/v2"
)

// Random returns a source for one draw. It depends on the seed and on the purpose of the
// draw, not on earlier draws.
func Random(seed uint64, what, key string, ordinal int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(what))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(key))
	return rand.New(rand.NewPCG(seed, h.Sum64()+uint64(ordinal)))
}
