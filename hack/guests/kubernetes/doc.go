// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package guests runs controllers from outside, taken as libraries and left as
// they are, on flyball's informers: Kubernetes' own Deployment and ReplicaSet
// controllers, through create, rollout, scale and delete on a real control
// plane. It is a module of its own, since k8s.io/kubernetes is heavy, and has
// tests alone.
package guests
