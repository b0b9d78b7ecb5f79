// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownership divides shards among the replicas of a program, by Leases alone.
//
//	<id>                   of the plan: how many shards there are, and what divides objects
//	<id>-<host>-<random>   of each member: its identity, renewed; empty once it has ended, for ever
//	<id>-shard-<number>    of each shard: the identity of the member that holds it, or empty; not renewed
//
//	watch of the Leases ──▶ world ──▶ decide ──▶ actions ──▶ requests that compare and swap
//	                          │
//	                          └──▶ trust ──▶ Guard ◀── reconciles, and their requests
//
// No process coordinates the others. Each sees all Leases, and Assign gives all that see the same
// the same result: each member has as many shards as its weight says, give or take one, and as few
// shards move as can. What a watch shows may be old. Safety rests on three things alone:
//
//   - Each write of a Lease is of the version that was seen, or creates it.
//   - A member trusts itself for nine tenths of a lease duration after it sent a renewal that was
//     answered, and whose event its own watch has shown: then that has shown everything before it, too,
//     such as the deletion of a shard's Lease by hand.
//   - Whoever ends a member, by emptying its Lease, has seen that Lease unchanged for the whole duration,
//     by its own clock. Clocks of two machines are not compared.
//
// So a member's shards are free once its Lease is empty, and not before. A Lease can be created at any
// time by a request that was under way for long, so a shard's is created free, and one that nobody has
// held since it was created is claimed only a lease duration after it was seen, the longest of all
// members; the same holds for the Lease of an ended member, and for a plan.
//
//	free ──claim──▶ claimed ──informers have what the holder before wrote──▶ held
//	  ▲                                                                       │ assigned to another
//	  └──release, with what was written──── empty ◀──reconciles in flight end─┘
//
// Promises, together with package manager:
//
//   - M31: no two members admit work on one shard at the same time, and no write of a reconcile passes
//     whose shard is not held. Members may end, stop, be cut off from the server and get late answers;
//     people may delete and edit Leases.
//   - M33: a shard of a member that ends is held by another after the lease duration and a few requests;
//     one that moves while both live waits only for its reconciles and some requests, and for a lease duration
//     after a write was cut off, since the server may still carry it out. When nothing changes,
//     all members together write at most as many renewals in a lease duration as there are members and an
//     eighth of the shards, if there are four shards for each member.
//   - M34: when a member comes or goes, at most as many shards move as one member has, and one.
//
// # Testing
//
// The model in model/ownership.pml says the same to a model checker, SPIN, which explores it completely;
// a test holds its constants against the code's. decide and Assign are pure. Package simtest of the
// simulation runs members on a simulated server under seeded faults.
package ownership
