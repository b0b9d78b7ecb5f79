// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package health serves /livez, /readyz and /healthz, and detects parts that make no
// progress (M4 and M10 of package manager).
//
// A Check is one check of a probe, and Handler serves checks. A Pulse looks at its
// Subjects, which are the controllers, the informers and the election, at every tick:
// one that makes no progress for too long while work waits for it fails its check.
// Package manager decides which checks there are and which count.
//
// Standstill, the pure part, has neither lock nor clock.
package health
