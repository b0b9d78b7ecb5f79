// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package byresource replaces client-go's factories for kinds that are known by
// their resource alone, dynamicinformer and metadatainformer, by ones whose
// informers are flyball's.
//
//	informer.SharedInformerFactory ─┬─NewDynamic──▶ dynamicinformer.DynamicSharedInformerFactory
//	                                └─NewMetadata─▶ metadatainformer.SharedInformerFactory
//	                                                    │ ForResource(widgets)
//	                                                    ▼
//	                                    flyball's informer of the resource, adapted
//
// It stands apart from its parent since client-go's generic informers link
// every API group.
//
// # Promises
//
//	G6  a resource has one informer, and it is the one that informer.ForResource
//	    or informer.ForResourceMetadata gives to flyball's own controllers: one
//	    watch and one store serve both
//	G7  what TweakListOptions selects, and nothing else, is in the informers
//
// Who made the flyball factory runs it, or with Options.RunOnStart the first
// Start does. As in client-go, what is asked for is watched after the next
// Start. A resource may be
// one that the server does not serve yet; its informer waits for it.
//
// # Concurrency
//
// Everything is safe for concurrent use. Only WaitForCacheSync blocks.
//
// # Testing
//
// The parent's adapters are held by tests of client-go's documented behaviour;
// this package by factories over the simulated server.
package byresource
