// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

// The constants that the code shares with the model of the protocol, model/ownership.pml.
const (
	// TrustNumerator and TrustDenominator give the part of a lease duration for which a member
	// trusts itself after it sent a renewal. The rest of the duration is for requests in flight.
	TrustNumerator, TrustDenominator = 9, 10

	// CollectAfter is the number of lease durations after which the Lease of an ended member that no
	// shard names is deleted.
	CollectAfter = 10
)

// The states of a shard, as a member sees it.
const (
	// ShardHeld is a shard whose keys this member picks, and whose requests it sends.
	ShardHeld = "held"
	// ShardDraining is a shard whose keys this member no longer picks. Requests of reconciles in
	// flight are still sent.
	ShardDraining = "draining"
)
