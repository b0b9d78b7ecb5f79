// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package state describes informers at one moment: what each list and watch does and why,
// what is stored, and what waits for handlers. Informer.Snapshot returns it; metrics and
// readiness are made from it. Its values are copies.
package state
