// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package embedded is a cluster inside a program that was started without one,
// so that it can be tried where there is nothing but Go.
//
//	Run ──▶ simulate.Loopback    the API server, on a port of this machine
//	    ──▶ RunActors            namespaces, the garbage collector, Deployments that run
//	    ──▶ your function        with the way to the server, for clients and kubectl
//
// The server outlives the function, so that what ends in order can still write.
// When Run returns, nothing is left: no goroutine, no port, and no file but what
// was asked to be kept.
//
// A program for production must not have it: link it by one file under the
// build constraint !production, and build images with -tags production.
//
// # Concurrency
//
// Run blocks; what it has started has ended when it returns.
//
// # Testing
//
// Tests run it on real ports; examples/website runs it as a process.
package embedded
