// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package kit runs a program's controllers against a simulated API server, in virtual
// time and with faults, and makes each failure reproducible. docs/testing.md is the guide.
//
//	func TestWebsites(t *testing.T) { kit.Test(t, websites, scenario) }
//
//	Test, Find, Bench ── one bubble per seed ──▶ scenario: Create, Edit, Settled, Never
//	                                                │
//	   manager + your setup, one or several ◀───────┘ ◀── faults by a Plan, instants, draws
//	      │  what it does, by internal/simhook
//	      ▼
//	   simulate.Server ──▶ History ──▶ invariants, pure functions of it
//	                          └─────▶ a line that replays it, a page, and the fewest faults
//
// A run has two phases. During the fault phase the scenario changes objects. Then the
// faults end: the program must come to rest within a bound, and the invariants and the
// scenario's checks must hold, also after a period in which only time passes.
// docs/invariants.md lists the invariants, and what each fault excuses.
//
// # Promises
//
//	K1  one seed of one scenario has one history, event by event, unless Config.Inexact is
//	    set; one of each hundred seeds runs twice to check that
//	K2  a draw depends only on the seed and its purpose, not on other operations
//	K3  after the fault phase there are no more faults; what was lost stays lost
//	K4  a run that does not come to rest within its bound fails, and one with more events
//	    than Config.MaxEvents ends and fails
//	K5  each violation comes with a line that runs its seed again, and its history as a page
//	K6  misuse fails the test and says what to write instead
//	K7  a failure is explained: a restless key with its last error and requests, a run with
//	    where it first differs from the nearest correct one, an omitted event with its key
//	K8  a fault triggered by a write happens right before it is sent or carried out, or
//	    between that and its answer; writes trigger most faults of a swarm that allow it
//	K9  a failing plan is printed as Go, with no operation that can be left out
//	K10 each bug of package zoo is found by one of twenty seeds, starting with the one it
//	    is pinned to; make zoo measures how many seeds it takes from other starts
//	K11 the server calls the webhooks of a process over the simulated network, so faults
//	    of the network and of the process affect them too
//	K12 a goroutine that waits for something outside its bubble, so that virtual time
//	    stands still, ends the run after ten seconds with its stack and with advice; the
//	    bubble is abandoned
//	K13 with Config.Vary every third run, from the ninth on, repeats a seed that has shown
//	    something new with one change of its faults
//	K14 a program of RunMain is killed, stopped, started again and cut off like one with a
//	    manager; the invariants that need nothing of its inside are checked
//	K15 the calls of a Service are in the history, faults are triggered by them as by writes,
//	    and what it makes for one object twice violates V25
//	K16 at rest keys that have written or wait for a timer are called early: V24, V26, V27
//	K17 Replay sends the requests of its recording, or stops at the first that differs
//
// # Concurrency
//
// Test, Run and Bench start bubbles and return when they have ended. The scenario's
// goroutine uses the World; checks run in other goroutines.
//
// # Testing
//
// Each invariant is tested with a history that violates it, the rest through Run.
package kit
