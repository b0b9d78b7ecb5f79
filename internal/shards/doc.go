// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package shards divides objects into shards by the hash that the API server uses for a shardSelector
// (KEP-5866, package k8s.io/apimachinery/pkg/sharding).
//
//	value of a field ── FNV-1a, 64 bits ──▶ hash space, cut into Count equal ranges ──▶ number of the shard
//
//	shards 0, 1 and 5 of 8 ──▶ shardRange(object.metadata.uid, '0x00…', '0x40…') || shardRange(…)
//
// All of it is pure, but for Keys, which admits the keys of held shards.
package shards
