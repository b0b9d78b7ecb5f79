// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package judges holds the simulated server against programs that know real
// ones. It has tests alone.
//
// The stories under testdata/kubectl are what a real kubectl says of a real
// server, command by command. The test lets the same kubectl tell them of the
// simulated one. After a change of a story's commands,
//
//	go test ./simulate/judges -record
//
// runs them on a real server and writes down what is said. Times, uids, revisions
// and addresses are left out.
//
// That server has no controllers, so a rollout that goes on by itself cannot be
// recorded. The stories under testdata/actors are told of a simulated server with
// actors, and what they say is written by hand.
//
// BenchmarkCost compares what both servers cost, in processor time and memory.
package judges
