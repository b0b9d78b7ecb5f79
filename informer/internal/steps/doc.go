// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package steps decides what a Reflector does next. It is a pure function:
//
//	Next(Progress, Outcome) Decision
//
// from where the Reflector stands and how its last step ended to the next step,
// the pause before it, and the state to show. Lists follow watches that are of
// no use, pages follow streaming lists that a server does not end, and a version
// never goes back, except in a declared epoch. Pauses grow with failures and are
// forgotten with progress. Classify reads an error as a Result.
package steps
