// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package inspect describes a running program to people and commands: what it does, what is wrong
// now, and why each key was reconciled.
//
//	Program: snapshots, recorded runs ──Of, KeysOf, RunsOf──▶ views ──JSON──▶ /debug/flyball/v1/…
//	                                                            └──▶ the page of manager/console
//
// The functions that make views are pure. The views are the documented schema of version 1: fields
// are added, and never renamed or removed. Times are RFC 3339, durations seconds. No value of a
// field of an object is in them, only the paths of fields.
//
// # Promises
//
//   - M24 A view is bounded: lists are read by pages of at most 500, whatever the program has.
//     A bad query is refused with what to write instead.
//   - M32 With shared objects the views say which replica holds each shard and each key, and name the
//     shards that nobody holds, or that cannot move, and why this replica takes none.
//
// # Testing
//
// Views are made from snapshots in tables. testdata/v1.txt has the schema, which may only grow.
package inspect
