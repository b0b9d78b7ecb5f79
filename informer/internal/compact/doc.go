// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package compact packs the objects that an informer holds: an Entry stands
// for an object in the Indexer and in backlogs, and is opened where the object
// leaves the informer.
//
//	object, its bytes ──▶ Packer.Pack ──▶ Entry: labels, version, compressed bytes
//	                         │ learns               │ Open
//	                         ▼                      ▼
//	                     dictionary          hot objects ◀── decode ◀── expand
//
// An Entry is compressed with a dictionary made of a sample of the kind's
// objects. The dictionary is renewed as more objects were seen; an entry keeps
// the dictionary that it was compressed with. Recently used objects stay
// decoded, within bounds; of others the Packer knows those that a reader still
// holds, so that an object is not in memory twice.
//
// The algorithm of the compression is a Codec, which the user passes: package
// informer/compact has one, and links it only into programs that use it.
//
// Everything is safe for concurrent use.
package compact
