// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package factory replaces client-go's generated informers.SharedInformerFactory
// by one whose informers are flyball's: a controller that takes a generated
// DeploymentInformer or lister runs on it unchanged.
//
//	informer.SharedInformerFactory ──New──▶ informers.SharedInformerFactory
//	                                            │ Apps().V1().Deployments(), ForResource(…)
//	                                            ▼
//	                                        flyball's informer of the kind, adapted
//
//	InformerFor(obj, newFunc) ──▶ client-go's own informer, from newFunc
//
// It stands apart from its parent since client-go's informers link every API
// group.
//
// # Promises
//
//   - Each kind has one informer, and it is the one that informer.For gives to
//     flyball's own controllers: one watch and one store serve both.
//   - Who made the flyball factory runs it. As in client-go, what is asked for is
//     watched after the next Start.
//   - G12: with Options.RunOnStart, Start, WaitForCacheSync and Shutdown are all
//     that a program needs, as with client-go's factory, and Options.Transform
//     changes each object before it is stored.
//   - G13: each notification shows states that etcd's history has, in their order:
//     none is invented, none comes back, an update begins where the one before
//     ended, and the last state is the server's, whatever breaks meanwhile.
//   - What InformerFor is given a function for, is made by that function, since
//     nobody can see what it lists and watches: that one is client-go's own
//     informer, and a log line says so. As in client-go, the first to ask for a
//     type decides for all.
//
// Factories that third parties have generated for their kinds have an interface
// of their own. Their InformerFor is one line over
// clientgo.NewSharedIndexInformer; docs/client-go.md shows it.
//
// # Concurrency
//
// Everything is safe for concurrent use. Shutdown waits for the goroutines of
// Start.
//
// # Testing
//
// The parent's adapters are held by tests of client-go's documented behaviour;
// this package by a controller in client-go's style on a real control plane, and
// by a comparison of each notification with what etcd itself tells.
package factory
