// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes runs Kubernetes' own Deployment and ReplicaSet controllers,
// taken as libraries and left as they are, on flyball's informers: through create,
// rollout, scale and delete, and through outages of a real and of a simulated server. It is a module of its own,
// since k8s.io/kubernetes is heavy, and has tests alone.
package kubernetes
