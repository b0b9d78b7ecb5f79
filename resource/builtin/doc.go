// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package builtin has the built-in kinds of Kubernetes whose version is stable, such as v1
// or v2. A program that uses it, in place of k8s.io/client-go/kubernetes/scheme, is some
// 6 MB smaller, because it links no alpha and beta versions.
//
//	scheme := runtime.NewScheme()
//	err := errors.Join(builtin.AddToScheme(scheme), apiv1.AddToScheme(scheme))
//
// For a beta version add its own package too, such as k8s.io/api/resource/v1beta2. The
// function holds no state and is safe for concurrent use on different schemes.
//
// # Testing
//
// Tests use it as programs do.
package builtin
