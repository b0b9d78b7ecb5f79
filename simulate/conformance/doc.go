// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance tests informers, managers and clients against the simulated API server and
// its faults. It has no code of its own.
package conformance
