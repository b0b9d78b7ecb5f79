// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package protoplan decodes protobuf messages of Kubernetes by a plan, which is
// made once from a Go type's struct tags.
//
//	type, selection ──Compile──▶ Plan
//	bytes ──Plan.Decode──▶ object: parts from a share.Table,
//	                       strings of the object in one block, no field that is left out
//
// A plan reads the form in which the generated Marshal writes: fields in
// ascending order, no singular field twice, maps of whole entries. For any other
// message Decode returns ErrUnusual, and the caller uses the type's own
// Unmarshal: so malformed messages get its errors, and what is unusual its
// meaning.
//
// Promise:
//
//	D1  a decoded object equals that of the type's own Unmarshal, nil and empty
//	    slices and maps included, save for the fields that are left out
//
// Types whose Unmarshal may not be generated are decoded by it. A Plan is safe
// for concurrent use.
//
// Memory: the package writes through pointers made from a struct's address and
// its fields' offsets. All memory with pointers is allocated with its own type,
// and pointers are only stored as pointers, so that the garbage collector sees
// them.
package protoplan
