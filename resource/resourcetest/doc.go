// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package resourcetest checks conversions between the versions of a kind.
//
//	func TestConversion(t *testing.T) {
//		resourcetest.RoundTrip(t, v1beta1.Conversion, resourcetest.Options{})
//	}
//
//	seed ──▶ random object ──┬─▶ version ──▶ hub ──▶ version   the same, without an annotation
//	                         └─▶ hub ──▶ version ──▶ hub       the same
//
// # Promises
//
//	O10 a field that a conversion loses fails the test, which names the field, the
//	    direction and the seed that repeats it; the same seed makes the same objects
//
// # Concurrency
//
// RoundTrip starts no goroutine.
//
// # Testing
//
// Its tests give it conversions that are wrong, each in one way.
package resourcetest
