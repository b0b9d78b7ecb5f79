// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package health answers /livez, /readyz and /healthz, and knows what has stopped making
// progress (M4 and M10 of package manager).
//
// A Check is one question of a probe, and Handler serves checks. A Pulse looks at its
// Subjects, which are the controllers, the informers and the election, at every tick: one
// that has stood still for too long while work waited for it fails its check. What to
// ask, and what counts, is for package manager to decide.
//
// Standstill, the pure part, has neither lock nor clock.
package health
