// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

// A variation of a seed has the seed's scenario and its plan with one change: a fault
// triggered by a write moves to a neighbouring write, another fault is added near it, or a
// fault is left out. The number of the variation is the high byte of the seed, so that the
// seed alone repeats it.

// mostVariations of a seed.
const mostVariations = 255

// variation returns the seed of the nth variation of a seed. The 0th is the seed
// itself.
func variation(seed uint64, nth int) uint64 { return seed | uint64(nth)<<56 }

// ofVariation returns the original seed and the number of the variation.
func ofVariation(seed uint64) (varied uint64, nth int) { return seed & (1<<56 - 1), int(seed >> 56) }
