// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package watchdog detects from outside that a testing/synctest bubble stands still for
// ever, and reports which goroutine holds its clock, and what to do about it (K12 of
// package kit).
//
// Guard waits for a bubble to end. It reads the stacks of all goroutines at intervals
// of real time, and abandons a bubble in which nothing has happened for its patience.
package watchdog
