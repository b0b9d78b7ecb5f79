// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package steps decides what a Reflector does next, as a pure function:
//
//	Next(Progress, Outcome) Decision
//
// It maps the Reflector's progress and the outcome of its last step to the next
// step, the pause before it, and the state to show. Lists replace watches that
// are of no use, pages replace streaming lists that a server does not end, and
// a version never goes back, except in a declared epoch. Pauses grow with
// failures and are reset by progress. Classify maps an error to a Result.
package steps
