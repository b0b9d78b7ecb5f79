// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package clientgo gives a client-go SharedIndexInformer as a source of keys,
// for a controller that moves to flyball before its informers do.
//
//	cache.SharedIndexInformer ──OnAdd, OnUpdate, OnDelete──▶ mapper ──K, Cause──▶ add
//
// The other way, flyball's informers for code that was written for client-go,
// is package informer/clientgo.
//
// # Promises
//
//	R1  each event that the informer tells adds the keys of the old object and
//	    those of the new one before the next event is taken
//
// The rest is client-go's: own writes are seen when its watch brings them, and
// an informer that cannot list never syncs and does not say why.
//
// # Concurrency
//
// Constructors start nothing. Run blocks, runs once, and does not run the
// informer. The mapper is called by one goroutine at a time and must not block.
//
// # Testing
//
// The source is held by package sourcetest.
package clientgo
