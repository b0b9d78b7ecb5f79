// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package jsonweight estimates how much memory decoding a JSON text allocates,
// without decoding it. A few bytes of JSON can become a large Go value: each {} in a
// list of containers is a struct of hundreds of bytes. What reads texts that others
// write weighs them first, and refuses those that weigh too much.
//
// The estimate counts what is allocated in all, not what is left at the end, and
// errs on the high side: tests hold it against what decoding allocates. It cannot
// know what a type's own UnmarshalJSON allocates; within such a value each object and
// each element counts as the largest type that the value's fields lead to.
//
// Everything here is a pure function of its arguments, and safe for concurrent use.
package jsonweight
