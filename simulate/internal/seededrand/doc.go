// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package seededrand makes random choices of a program, or of the server, depend on a seed.
//
// Draws are random numbers, with one sequence per name; Random is a source for one draw. Instants
// gives each step of a run its own moment of virtual time, so that the scheduler decides nothing:
// K1 and K2 of package kit. All are safe for concurrent use and independent of World.
package seededrand
