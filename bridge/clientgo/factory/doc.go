// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package factory replaces client-go's generated
// informers.SharedInformerFactory with one of flyball informers: controllers
// that take a generated DeploymentInformer or lister run on it unchanged.
//
//	informer.SharedInformerFactory ──New──▶ informers.SharedInformerFactory
//	                                            │ Apps().V1().Deployments(), ForResource(…)
//	                                            ▼
//	                                        flyball's informer of the kind, adapted
//
//	InformerFor(obj, newFunc) ──▶ client-go's own informer, from newFunc
//
// It is a separate package because client-go's informers link every API group.
//
// # Promises
//
//   - Each kind has one informer, shared with informer.For: one watch and one
//     store serve flyball's own controllers too.
//   - The creator of the flyball factory runs it. As in client-go, an informer
//     is watched after the next Start.
//   - G12: with Options.RunOnStart a program only needs Start, WaitForCacheSync
//     and Shutdown, as with client-go's factory, and Options.Transform modifies
//     each object before it is stored.
//   - G13: notifications show states from etcd's history, in order: none is
//     invented, none returns after a newer one, each update begins where the
//     previous one ended, and the last state is the server's, whatever fails
//     meanwhile.
//   - An informer requested with a function for InformerFor is made by that
//     function, since what it lists and watches is unknown: it is client-go's
//     own informer, and a log line says so. As in client-go, the first request
//     for a type decides.
//
// Factories that third parties generate for their kinds have their own
// interfaces. Their InformerFor is one line with
// clientgo.NewSharedIndexInformer; see docs/client-go.md.
//
// # Concurrency
//
// Everything is safe for concurrent use. Shutdown waits for the goroutines of
// Start.
//
// # Testing
//
// Tests of client-go's documented behaviour cover the adapters of the parent
// package. This package is tested with a client-go style controller on a real
// control plane, and by comparing each notification with etcd's own events.
package factory
