// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package shards compares how the simulated server and a real kube-apiserver with the feature
// gate ShardedListAndWatch (KEP-5866) answer requests with a shard selector. It has only tests.
// The uids of objects differ between any two servers, and so do their shards: there are no
// transcripts, but each server is asked the same, and its answers are reduced to facts that do
// not depend on uids.
//
//	observe ──▶ real server      ──▶ facts ─┐
//	        ──▶ simulated server ──▶ facts ─┴▶ equal, except for what 1.38 has changed
//
// A server without the gate is that of the transcripts in package recorded.
package shards
