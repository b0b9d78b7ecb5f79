// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package chance makes random choices of a program depend on a seed.
//
// Draws are random numbers, with one sequence per name. Instants gives each step of a
// run its own moment of virtual time, so that the scheduler decides nothing: K1 and K2
// of package kit. Both are safe for concurrent use and independent of World.
package chance
