// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package share finds parts of objects that are decoded already, by the bytes
// that they are decoded from.
//
//	bytes of a part ──Look──▶ found: a live part, used as it is
//	                          wanted: seen before; decode it alone, then Keep
//	                          else: decode it as a part of its object
//
// A Table holds weak pointers and copies of the bytes. Each collection of
// garbage removes the entries whose part no object uses. A part enters at its
// second sight, and the memory of first sights has a fixed size. A Site whose
// bytes rarely repeat is looked up rarely.
//
// Promises:
//
//	D2  a shared part never changes and equals what was decoded: it is found by
//	    all of its bytes, and what code has modified is not found after Reset
//	D3  memory returns: what no live object uses leaves the table, and a stream
//	    of unique values costs a constant
//
// Everything is safe for concurrent use. A nil Table shares nothing.
//
// Tests call runtime.GC, and Stats, which removes the dead entries.
package share
