// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package serving serves HTTP on the addresses of a manager: its health and its metrics.
//
// A Server listens when Run begins. On loopback it answers only requests for this
// machine's own hosts (M9 of package manager), and over TLS it serves the certificate of
// a directory, read again when it changes, or one made in memory. Profiles adds what
// net/http/pprof serves.
package serving
