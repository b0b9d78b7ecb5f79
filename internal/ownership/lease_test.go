// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import "testing"

// The names of shards' Leases are not those of other operators, or of shards that a label names.
func TestShardOf_KnowsItsOwnNames(t *testing.T) {
	for name, want := range map[string]int{
		"op-shard-0": 0, "op-shard-31": 31, "op-1": -1, "op-shard-01": -1, "op-shard--1": -1, "op-shard-4096": -1, "op-shard-a": -1,
		"op-a-shard-1": -1, "op": -1, "other-shard-1": -1,
	} {
		shard, ok := shardOf("op", name)
		if !ok {
			shard = -1
		}
		if shard != want {
			t.Errorf("the Lease %s is of shard %d, want %d (-1: of none)", name, shard, want)
		}
		if ok && shardName("op", shard) != name {
			t.Errorf("the Lease of shard %d is %s, want %s", shard, shardName("op", shard), name)
		}
	}
}
