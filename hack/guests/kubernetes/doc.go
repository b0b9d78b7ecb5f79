// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes runs Kubernetes' own Deployment and ReplicaSet controllers, unmodified
// libraries, on flyball's informers: through create, rollout, scale and delete, and through
// outages of a real and of a simulated server. It also builds kube-controller-manager and
// kube-scheduler with flyball's informer factories underneath and runs them through the
// same. Doctor examines the controllers of workloads. It is a separate module, because
// k8s.io/kubernetes is a large dependency.
package kubernetes
