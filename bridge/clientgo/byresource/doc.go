// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package byresource replaces client-go's dynamicinformer and metadatainformer
// factories, for kinds known only by resource, with factories of flyball
// informers.
//
//	informer.SharedInformerFactory ─┬─NewDynamic──▶ dynamicinformer.DynamicSharedInformerFactory
//	                                └─NewMetadata─▶ metadatainformer.SharedInformerFactory
//	                                                    │ ForResource(widgets)
//	                                                    ▼
//	                                    flyball's informer of the resource, adapted
//
// It is a separate package because client-go's generic informers link every API
// group.
//
// # Promises
//
//	G6  a resource has one informer, shared with informer.ForResource or
//	    informer.ForResourceMetadata: one watch and one store serve flyball's own
//	    controllers too
//	G7  the informers contain exactly what TweakListOptions selects
//
// The creator of the flyball factory runs it, or with Options.RunOnStart the
// first Start does. As in client-go, an informer is watched after the next
// Start. The server need not serve the resource yet; its informer waits for it.
//
// # Concurrency
//
// Everything is safe for concurrent use. Only WaitForCacheSync blocks.
//
// # Testing
//
// Tests of client-go's documented behaviour cover the adapters of the parent
// package; this package is tested with factories on the simulated server.
package byresource
