// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package embedded runs a cluster inside a program, so that the program can be tried
// with nothing but Go.
//
//	Run ──▶ simulate.Loopback    the API server, on a port of this machine
//	    ──▶ RunActors            namespaces, the garbage collector, Deployments that run
//	    ──▶ your function        with the way to the server, for clients and kubectl
//
// The server stops after the function has returned, so that the function can still
// write during its shutdown. When Run returns, no goroutine, port or file is left,
// except files that Options.Data keeps.
//
// Do not link it into production programs: import it in one file with the build
// constraint !production, and build images with -tags production.
//
// # Concurrency
//
// Run blocks; everything that it started has ended when it returns.
//
// # Testing
//
// The tests run it on real ports; examples/website runs it as a process.
package embedded
