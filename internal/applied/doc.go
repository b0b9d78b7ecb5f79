// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package applied remembers the applies that the server has answered, so that one whose
// outcome is known is not sent again.
//
//	wanted ──▶ Digest ─┐
//	                   ├──▶ Memory.Knows ──▶ skip, or send ──▶ Memory.Begin … end(Known)
//	cached ──▶ StateOf ┘
//
// An apply is known if all of this holds (state.go):
//
//   - the wanted object is, byte for byte, the one that was last applied to this key by this
//     owner, and no other apply to it was on its way at the same time;
//   - the cache has the object with the UID of the answer, and what the apply can change in it
//     is as in the answer;
//   - its version is that of the answer; or it is newer, and the rest of the object, which the
//     apply cannot change, differs and so explains it. For an object the rest is its status,
//     for a status all else. A newer version without any difference means that something was
//     changed that the cache does not have, such as the owners of fields, or was changed and
//     changed back, which can take fields from their owner;
//   - the answer is younger than an hour, for what no cache shows: an owner and a status that
//     changed together, another admission, another schema.
//
// # Concurrency
//
// A Memory is safe for concurrent use. Nothing blocks.
//
// # Testing
//
// Tables and a fuzz target. The tests of package client apply to a simulated server what was
// skipped, and compare.
package applied
