// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package jsonplan decodes JSON into objects by a plan that is compiled once for
// each type.
//
//	type, fields ──Compile──▶ Plan
//	                           │ Decode, in one pass
//	bytes of an object ────────┴──▶ a struct, or an unstructured.Unstructured
//	                           │
//	                     share.Table: strings and parts that other objects have
//
// The reference is UnmarshalCaseSensitivePreserveInts of sigs.k8s.io/json, which
// client-go uses. What a plan refuses is decoded by the reference, whose errors
// name the field: texts that are not valid, objects that have a key twice, which
// the reference merges, and deeply nested lists. Values that are costly to
// decode (package decodelimit) are refused. A type that a plan could decode
// differently has none.
//
// A type's own UnmarshalJSON and UnmarshalText are called as by the reference,
// except for metav1.Time and MicroTime in UTC and intstr.IntOrString, which a
// plan reads itself. Lists and maps are made in their final size. The strings of
// an object that are not shared stand together in one allocation, so each keeps
// them all in memory.
//
// Pointers, lists and maps of up to 16 KiB of text are shared as a whole, in
// Unstructured also strings in their interfaces, and strings of up to 1 KiB by
// their content. Pointers to numbers and booleans are not: they take less than
// an entry of the table.
//
// Promise:
//
//	D1  a decoded object equals the one that the reference decodes, or both
//	    refuse the text
//
// Plans are safe for concurrent use. Tests compare each text with the
// reference, and so do the fuzz targets.
package jsonplan
