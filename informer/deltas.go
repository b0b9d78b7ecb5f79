// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

// Reached says that a batch brings a scope to a version: of a bookmark, of the
// last event of the watch, or of a list.
type Reached struct {
	Scope   ScopeID
	Version Version
	// List: a list of the scope ends in the batch.
	List bool
}

// Batch is a contiguous front of the log. It is valid until the next Pop or
// PopBatch.
type Batch[T Object] struct {
	// Deltas in the order of their streams.
	Deltas []Delta[T]
	// Reached, by ascending scope, once each.
	Reached []Reached
	// Synced are the scopes whose first list ends in this batch.
	Synced []ScopeID
	// Epochs are the scopes that begin anew with this batch: the server's
	// revisions went back, and versions from before mean nothing.
	Epochs []ScopeID
}
