// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package serving serves HTTP on the addresses of a manager: health and metrics.
//
// A Server listens when Run begins. On loopback it answers only requests for this
// machine's own hosts (M9 of package manager), and over TLS it serves the certificate
// in a directory, which it rereads when it changes, or a self-signed one in memory.
// Profiles adds the handlers of net/http/pprof.
//
// A Guard authorizes the requests to a server by TokenReview and SubjectAccessReview of the
// API server (M6). It caches a bounded number of answers, each for a bounded time, and
// concurrent requests with the same question share one review. No token is kept or logged.
// It is safe for concurrent use and starts nothing.
package serving
