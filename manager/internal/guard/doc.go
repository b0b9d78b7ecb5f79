// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard lets the requests of a server pass that their users may make, as the
// API server says by TokenReview and SubjectAccessReview (M6 of package manager).
//
// A Guard is an http.Handler. It remembers a bounded number of answers, each for a
// bounded time, and has those who ask the same at once share one review. No token is
// kept or logged. It is safe for concurrent use and starts nothing.
package guard
