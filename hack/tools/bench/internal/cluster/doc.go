// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster makes the objects of a cluster for benchmarks: Pods as
// kube-controller-manager, the scheduler, a kubelet and an admission webhook
// leave them, and custom resources of three sizes, as Go values and as the
// bytes that a kube-apiserver sends.
//
//	PodOptions ──▶ Pods.Pod(i) ──▶ Encoder ──▶ Events, Pages ──▶ a client under test
//	 seed, count    one object      JSON or     iterators over encoded
//	 and owners     at a time       protobuf    events and pages of a list
//
// Everything is a function of the seed and the index: two runs get the same
// bytes, and nothing but the object at hand is live. What a cluster makes unique
// per Pod is unique here: name, UID, resource version, IP, container IDs, the
// name of the token volume. What Pods of an owner have in common in a cluster,
// they have in common here, and no more: measurements of sharing, of
// compression or of dictionaries are as good as on a cluster.
//
// A returned object is the caller's, but its strings may share memory with
// other objects of this package. Measure memory with objects that were decoded
// from bytes.
//
// Everything is safe for concurrent use, except that an Encoder belongs to one
// goroutine.
package cluster
