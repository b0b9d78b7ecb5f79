// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package clientgo makes a client-go SharedIndexInformer a source of keys, for
// a controller that moves to flyball before its informers do.
//
//	cache.SharedIndexInformer ──OnAdd, OnUpdate, OnDelete──▶ mapper ──K, Cause──▶ add
//
// For the reverse, flyball's informers in code written for client-go, see
// package informer/clientgo.
//
// # Promises
//
//	R1  each event of the informer adds the keys of the old and of the new object
//	    before the next event is taken
//
// Everything else is client-go's: own writes are visible when its watch
// delivers them, and an informer that cannot list never syncs and gives no
// reason.
//
// # Concurrency
//
// Constructors start nothing. Run blocks, runs once, and does not run the
// informer. The mapper is called by one goroutine at a time and must not block.
//
// # Testing
//
// The source passes the suite of package sourcetest.
package clientgo
