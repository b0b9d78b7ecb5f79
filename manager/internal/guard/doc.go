// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard authorizes the requests to a server by TokenReview and
// SubjectAccessReview of the API server (M6 of package manager).
//
// A Guard is an http.Handler. It caches a bounded number of answers, each for a bounded
// time, and concurrent requests with the same question share one review. No token is
// kept or logged. It is safe for concurrent use and starts nothing.
package guard
