// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package costly finds values that take far more time and memory to decode than
// their text, before they are decoded. The quantity 1e-100000000 has 12 bytes;
// to parse it, resource.Quantity divides by a number of 40 MB.
//
//	type ──Of──▶ Plan: where its values may be costly; nil: nowhere
//	               │ JSON, Protobuf
//	bytes ─────────┴──▶ nil, or an error that names the value
//
// Quantities, numbers of math/big and inf.Dec are bounded by their digits as
// written out, without an exponent. The canonical form of a quantity has as
// many. Types that decode themselves inside of each other, each of which reads
// the text again, are bounded by their depth.
//
// What a type's own decoding creates without a field for it is not known. The
// functions are pure; plans are immutable and safe for concurrent use.
package costly
