// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package recorder turns what controllers record into Events of the API server.
//
//	recorder ──► Mail ──► book: what is one series, what is too much
//	               │
//	               └────► POST and PATCH of events.k8s.io/v1
//
// Recording never blocks. Mail sends in one goroutine, its Run, and what was recorded
// before the stop is sent before Run returns (M7 of package manager). The book, the pure
// part, has neither lock nor clock.
package recorder
