// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package jsonweight estimates how much memory decoding a JSON text allocates,
// without decoding it. A few bytes of JSON can become a large Go value: each {}
// in a list of containers is a struct of hundreds of bytes. Decoders of foreign
// texts weigh them first and refuse those that are too heavy.
//
// The estimate counts all allocations, not only what remains, and is rather too
// high; tests compare it with actual allocations. It does not know what a
// type's own UnmarshalJSON allocates: within such a value each object and
// element counts as the largest type that the value's fields lead to.
//
// All functions are pure and safe for concurrent use.
package jsonweight
