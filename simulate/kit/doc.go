// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package kit runs a program's controllers against a simulated API server, in
// virtual time, while things go wrong, and says how to see it again.
//
//	Test, Find, Bench ── one bubble per seed ──▶ World   sweep.go, run.go, bench.go
//	  seeds in their order, and variations of those that show something new
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
// A run has two phases. While things go wrong, the scenario changes objects. Then
// the faults end, all must come to rest within a bound, the invariants and the
// scenario's checks must hold, and still hold when nothing but time has passed.
//
// # Promises
//
//	K1  one seed of one scenario has one history, event by event, unless
//	    Config.Inexact says why not; of each hundred seeds one is run twice to see
//	    to that
//	K2  what is drawn follows from the seed and from what it is for: an operation
//	    more or less in the plan moves no other
//	K3  when the fault phase is over, nothing goes wrong any more; what was lost
//	    by then stays lost
//	K4  a run that does not come to rest within its bound fails
//	K5  each violation comes with one line that runs its seed again, and with the
//	    history as JSON and as one page
//	K6  misuse fails the test with what to write instead
//	K7  a failure says why: of a key that does not come to rest its last error and
//	    requests, and of a run where it first parts from the nearest that is right
//	K8  a fault that is aimed at a write happens right before it is sent or carried
//	    out, or right after it is carried out and before it is answered; a swarm aims
//	    most of those that it can at writes that the same seed makes without faults
//	K9  a plan that fails is printed as Go with no operation that can be left out
//	K10 each bug of package zoo is found by one of the twenty seeds from the one that it
//	    is pinned to; make zoo measures how many seeds that takes from other ones
//	K11 the server calls the webhooks of a process over the simulated network: a fault
//	    of the network or of the process reaches them too
//	K12 a goroutine that waits for something outside of its bubble, so that virtual
//	    time stands still, ends the run after ten seconds with its stack and with what
//	    to do; the bubble itself is abandoned
//	K13 every third run of a sweep, from the ninth on, repeats a seed that has shown what
//	    no run before it did, with one fault more, one less, or one at a neighbouring
//	    write. Which one follows from the histories of earlier runs, not from when they
//	    end. The number of the variation is the high byte of its seed
//
// # What a fault excuses
//
// Faults come with each seed, so no invariant is left out for a whole plan:
//
//	fault             invariant  what is excused           until
//	DropEvent         V2         stores of the kind        the faults end; with an audit, rest
//	Reorder, Coalesce V2         stores of the kind        the faults end
//	Rewind            V2         stores that there were    their epoch, or the faults end
//	of the network,   V14        eight lists for each, of the kind or the process that
//	 of the server               it happens to; it may wait for the next list. A kind
//	                             that a webhook converts waits for every process, and
//	                             one list more follows each change of its CRD
//	the same, Pause,  V15        keys of the processes     eleven minutes after its end:
//	 Jump, long Hang             that it happens to        a hard deadline and a retry
//	Rewind            V10        writes of any leader      the next claim of the lease
//	TimeTravel        V14, V15   all processes             as of the network
//	Crash, Stop,      V4, V8     what the process owed     for good: its successor lists all
//	 TimeTravel
//	any end           V10, V11   what was on the wire      a millisecond later
//	Pause, Jump       V11        what is left running at   the grace period after it
//	                              the end of a stop
//	Delay, then that  V10, V11   the same                  its amount later, and its
//	                                                       amount after its end
//	any               V1, V4, V7, V13, V17 speak of what is at rest, V8 of timers after it
//
// Nothing excuses V3, V5, V6, V12 and V22. Panic, short Hang, Stall, Stop, Reject,
// ClockStep, Poison, Huge and Nasty excuse no list and no waiting key. What DropEvent and Rewind hide
// comes to light by an audit alone, or by a person: unless informers audit, which
// helps against DropEvent, all processes are started anew when the faults end.
//
// # What the invariants leave out
//
// Each is as narrow as what the history tells:
//
//	V1, V2   objects are compared by UID and version, not by content; of informers of a
//	         selection V1 asks nothing about what they lack, and V2 nothing at all
//	V5       workers of one process; between replicas V10 judges writes alone
//	V6       no model of the queue: here none is made up, and by V4 none is lost
//	V11      what is asked, reconciled, told, stored and logged. That the Lease is given
//	         back last follows from V10 for writes, not for reconciles
//	V12      goroutines, by the bubble's end, and connections; no timer that nobody
//	         waits for, and no registration
//	V13      elements of stores, backlogs and queues at rest; no bytes, nothing before
//	V14      lists of a kind; not how often a host is asked in all
//	V15      when other keys are taken up; what they then find is for V1 and V4, at rest
//	V17      what the scenario's checks say, and nothing that they do not ask
//
// # What it is not
//
// A bubble has one clock: time.Now and timers are the same for all in it. Only what
// asks internal/simhook for the wall clock, or Now, sees one process's clock
// stepped. A goroutine cannot be killed: a crash cuts the network for ever and is blind to
// what comes after. The content of a cache is compared by version; that nobody
// changes it in place is checked by copies.
//
// Some faults have no verb:
//
//	lost packets         TCP makes delays of them: Delay, and BlackHole if all are lost
//	damaged bytes        TLS makes a broken connection of them: Cut; what a proxy answers in
//	                     the server's place is SpoilList and SpoilEvent
//	a suspended machine  a bubble has one clock: Jump lets time pass for everybody
//	one of several API   Lag is that of all watches and lists from the cache; a process that
//	 servers lags        comes from an up-to-date server to one that lags meets the same
//	a removed CRD        takes the user's objects along, so that nothing of what is wanted could
//	                     hold; a scenario that means it deletes the CRD and makes all anew
//
// # Leader election
//
// With Config.Manager.LeaderElection the processes elect who works. What waits in a
// standby's queue is no unrest, nor are renewals, and at rest somebody must lead. By the
// server's own log V10 then demands that nobody writes but whom the Lease names, save
// Config.Unguarded. Who has lost leadership ends, and is started anew a second later.
// A leader that is stopped gives the Lease back. V5 is about one process still: reconciles overlap while a replica that was the
// leader stands still, their writes do not. A request that Delay holds up for more than a tenth of
// the lease can be carried out too late, and V10 says so.
//
// # Concurrency
//
// Test, Run and Bench start bubbles and return when they have ended. A World is
// used by the scenario's goroutine, its checks run in others.
//
// # Testing
//
// Each invariant is held by a history that violates it. The rest is driven
// through Run, with programs that are right and programs that are not.
package kit
