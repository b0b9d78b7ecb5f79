// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package chance decides by a seed what a program leaves to chance.
//
// Draws are random numbers, a sequence for each name. Instants give each step of a run a
// moment of virtual time that no other step has, so that the scheduler decides nothing:
// K1 and K2 of package kit. Both are safe for concurrent use, and know of no World.
package chance
