// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package kit runs a program's controllers against a simulated API server, in virtual
// time and with faults, and makes each failure reproducible.
//
//	Test, Find, Bench ── one bubble per seed ──▶ World   sweep.go, run.go, bench.go
//	  seeds in their order, and variations of those that show something new if asked
//	  before each a probe, a run without faults, for what a plan aims at   aim.go
//	  scenario   Run(setup), Create, Edit, Delete, Settled, Never   world.go, verbs.go
//	     │
//	     ▼ one program or several, each alive or between two lives program.go
//	     │                                   ┌─ faults by a Plan   plan.go, fault.go, fire.go, slow.go
//	  process: manager + setup, its networks ┤                     process.go, webhooks.go
//	     │                                   └─ instants, draws    hooks.go, wire.go, instants.go
//	     ▼ what it does, as internal/simhook tells it
//	  simulate.Server, told by a Tracer                            record.go
//	     │
//	     ▼
//	  History ──▶ invariants, pure functions of it                 history.go, invariant*.go
//	  watchdog, outside the bubble                                 watchdog.go
//	     ├─────▶ one line that replays it, JSON and a page         report.go, timeline.html
//	     └─────▶ run again with fewer faults, for the fewest       shrink.go, gosyntax.go
//
// A run has two phases. During the fault phase the scenario changes objects. Then the
// faults end: the program must come to rest within a bound, and the invariants and the
// scenario's checks must hold, also after a period in which only time passes.
//
// # Promises
//
//	K1  one seed of one scenario has one history, event by event, unless
//	    Config.Inexact is set; one of each hundred seeds runs twice to check that
//	K2  a draw depends only on the seed and its purpose: adding or removing an
//	    operation does not change the others
//	K3  after the fault phase there are no more faults; what was lost stays lost
//	K4  a run that does not come to rest within its bound fails
//	K5  each violation comes with one line that runs its seed again, and with the
//	    history as JSON and as one page
//	K6  misuse fails the test and says what to write instead
//	K7  a failure is explained: a key that does not come to rest with its last error
//	    and requests, a run with where it first differs from the nearest correct run
//	K8  a fault aimed at a write happens right before it is sent or carried out, or
//	    right after it is carried out and before it is answered; a swarm aims most of
//	    its aimable faults at writes that the same seed makes without faults
//	K9  a failing plan is printed as Go, with no operation that can be left out
//	K10 each bug of package zoo is found by one of twenty seeds, starting with the one
//	    it is pinned to; make zoo measures how many seeds it takes from other starts
//	K11 the server calls the webhooks of a process over the simulated network, so
//	    faults of the network and of the process affect them too
//	K12 a goroutine that waits for something outside its bubble, so that virtual
//	    time stands still, ends the run after ten seconds with its stack and with
//	    advice; the bubble is abandoned
//	K13 with Config.Vary every third run of a sweep, from the ninth on, repeats a seed
//	    that has shown something new, with one fault more, one less, or one at a
//	    neighbouring write. The choice depends on the histories of earlier runs, not on when they end. The
//	    number of the variation is the high byte of its seed
//
// # What a fault excuses
//
// Faults come with each seed, so no invariant is disabled for a whole plan:
//
//	fault             invariant  what is excused           until
//	DropEvent         V2         stores of the kind        the faults end; with an audit, rest
//	Reorder, Coalesce V2         stores of the kind        the faults end
//	Rewind            V2         existing stores           their epoch, or the faults end
//	of the network,   V14        eight lists per fault, of the kind or the process that
//	 of the server               it affects, possibly only at the next list. A kind
//	                             converted by a webhook depends on every process, and
//	                             each change of its CRD excuses one list more
//	the same, Pause,  V15        keys of the affected      eleven minutes after its end:
//	 Jump, long Hang             processes                 a hard deadline and a retry
//	Rewind            V10        writes of any leader      the next claim of the lease
//	TimeTravel        V14, V15   all processes             as of the network
//	Crash, Stop,      V4, V8     pending work of the       for good: its successor lists all
//	 TimeTravel                  process
//	any end           V10, V11   what was on the wire      a millisecond later
//	Pause, Jump       V11        what still runs at        the grace period after it
//	                             the end of a stop
//	Delay, then that  V10, V11   the same                  its amount later, and its
//	                                                       amount after its end
//	any               V1, V4, V7, V13, V17 apply at rest, V8 to timers after it
//
// Nothing excuses V3, V5, V6, V12 and V22. Panic, short Hang, Stall, Stop, Reject,
// ClockStep, Poison, Huge and Nasty excuse no list and no waiting key. Only an audit or
// a restart reveals what DropEvent and Rewind hide: unless informers audit, which helps
// against DropEvent, all processes are restarted when the faults end.
//
// # What the invariants leave out
//
// Invariants cover only what the history records:
//
//	V1, V2   compare objects by UID and version, not by content; for informers with a
//	         selector V1 ignores missing objects, and V2 does not apply
//	V5       covers workers of one process; between replicas V10 covers only writes
//	V6       has no model of the queue: it checks that no reconcile is spurious, and V4
//	         that none is lost
//	V11      covers requests, reconciles, handler calls, stores and logs. That the Lease
//	         is released last follows from V10 for writes, not for reconciles
//	V12      covers goroutines, by the end of the bubble, and connections; no timers
//	         without a waiter, and no registrations
//	V13      counts elements of stores, backlogs and queues at rest; no bytes, and
//	         nothing before rest
//	V14      counts lists of a kind; not all requests to a host
//	V15      covers when other keys are taken up; V1 and V4 cover the result, at rest
//	V17      covers only what the scenario's checks check
//
// # What it is not
//
// A bubble has one clock: time.Now and timers are the same for all goroutines. Only
// code that gets the wall clock from internal/simhook or Now sees the stepped clock of
// its process. A goroutine cannot be killed: a crash cuts the network for ever and
// ignores what the process does afterwards. Cache contents are compared by version;
// copies detect modification in place.
//
// Some faults have no verb:
//
//	lost packets         TCP turns them into delays: Delay, or BlackHole if all are lost
//	damaged bytes        TLS turns them into a broken connection: Cut; answers of a proxy
//	                     in place of the server are SpoilList and SpoilEvent
//	a suspended machine  a bubble has one clock: Jump advances time for all
//	one of several API   Lag affects all watches and lists from the cache; a process that
//	 servers lags        moves from a current server to a lagging one sees the same
//	a removed CRD        deletes the user's objects, so that no expectation could hold; a
//	                     scenario that needs it deletes the CRD and creates all again
//
// # Leader election
//
// With Config.Manager.LeaderElection the processes elect a leader. Keys in a standby's
// queue and renewals do not count as unrest, and at rest there must be a leader. V10
// then requires, by the server's own log, that only the process that the Lease names
// writes, except for kinds in Config.Unguarded. A process that loses leadership ends,
// and is restarted a second later. A stopped leader releases the Lease. V5 still
// concerns one process: while a former leader is paused, reconciles of replicas
// overlap, but their writes do not. A request that Delay holds up for more than a tenth
// of the lease can be carried out too late, and V10 reports it.
//
// # Concurrency
//
// Test, Run and Bench start bubbles and return when they have ended. The scenario's
// goroutine uses the World; checks run in other goroutines.
//
// # Testing
//
// Each invariant is tested with a history that violates it. The rest is tested through
// Run, with correct and incorrect programs.
package kit
