// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package judges tests the simulated server with programs that know real ones. It has only
// tests.
//
// The stories under testdata/kubectl are the output of a real kubectl against a real
// server, command by command. The test runs the same kubectl against the simulated server
// and compares. After a change of a story's commands,
//
//	go test ./simulate/internal/judges -record
//
// runs them against a real server and records the output. Times, uids, revisions and
// addresses are replaced.
//
// That server has no controllers, so a rollout that makes progress cannot be recorded. The
// stories under testdata/actors run against a simulated server with actors, and their
// output is written by hand.
//
// BenchmarkCost compares the cost of both servers in processor time and memory.
package judges
