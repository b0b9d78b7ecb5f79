// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager runs the controllers of one process: it starts everything in order,
// stops it in reverse, and reports its health.
//
//	mgr, err := manager.New(manager.Options{Scheme: scheme})
//	…
//	err = mgr.Add(reconcile.For(websites, reconcileWebsite, reconcile.Options{}))
//	…
//	err = mgr.Run(manager.SignalContext())
//
//	        Run(ctx)                                      ctx ends, or an error
//	           ▼                                                   ▲
//	┌─ servers ──────── health, metrics ───────── last to stop ────┤
//	├─ webhooks ─────── admission, conversion, InstallCRDs         │
//	├─ informers ────── lists and watches                          │
//	├─ standby ──────── what runs on every replica                 │
//	├─ leadership ───── reached when this process leads            │
//	└─ controllers ──── sources, queue, workers ── first to stop ──┘
//
// New starts nothing, and no request is sent before Run. A stop begins when the context
// of Run ends or when something that runs returns an error, which Run then returns. From
// that moment /readyz fails and Add refuses. Controllers finish the reconciles in flight
// while their informers keep running. Options.GracePeriod bounds the stop; the error of
// Run names what has not ended by then.
//
// # Promises
//
//	M1  stages start in order and stop in reverse
//	M2  a stop takes no new work, drains, then releases the lease, then stops the
//	    informers, and the servers last; the lease is kept while guarded work continues
//	M3  a write that begins when the lease can no longer be trusted is refused, not sent
//	M4  ready means synced; alive means progress
//	M5  a standby is synced and its queues are filled; after a released lease it
//	    reconciles without waiting for anything but the lease and M13
//	M6  guarded endpoints answer only users whom the API server authorizes, and nobody
//	    without its decision, which is kept for at most five minutes
//	M7  Events recorded before the stop are sent before it ends, within the grace period
//	M8  no client made from Config writes past the gate, however its configuration was
//	    copied, wrapped or stripped: one that has lost the gate gets no connection
//	M9  servers on loopback answer only requests for hosts of this machine and AllowedHosts
//	M10 a part that makes no progress for Options.StuckAfter while work waits for it fails
//	    /livez under its name, with the stack of what hangs; a frozen process, slow
//	    reconciles and an unreachable server do not; probes, metrics and Snapshot answer
//	    meanwhile
//	M11 a stop releases the lease after the last guarded write was answered; if the
//	    outcome of one is unknown, the lease is kept until it expires
//	M12 the writes of every client made from Config or StandbyConfig are reported to
//	    Options.Client.Observer, by default the informers, once; reads, and writes of kinds
//	    without an informer, cost no allocation
//	M13 after a release, Listers show what the previous leader wrote before a controller starts
//	M14 after a crash the same holds for each write that was carried out before the new
//	    leader asked the server; both waits end after 15 seconds with a warning
//	M15 a hand-over with watches that are not late takes less than 100 ms, and no list
//	    unless the predecessor's writes include some of unknown version
//	M16 with Options.Sharding, reconciles begin only for objects seen in this shard; with
//	    AskParent they write no child of one that has moved
//	M17 what was removed, or ends without an error during the run, is forgotten
//	M18 a candidate that is refused the lease says why, and after two minutes is not ready
//	M19 Normal Events never displace Warnings; an object's first dropped one is logged
//	O6  the informers start when each CustomResourceDefinition of InstallCRDs is established
//	O7  an update of one that would take something from clients or stored objects is an error
//	O8  replicas that start together install each once, and leave a newer one as it is
//
// # Leadership
//
// With Options.LeaderElection the replicas of a program elect a leader by a Lease, and the others run the
// stages up to StageStandby (docs/leader-election.md); with Options.Sharding they share the objects
// (docs/sharding.md). Client and clients made from Config write through a gate; StandbyClient and
// StandbyConfig do not.
//
// # Health and metrics
//
// /readyz, /livez and /healthz take ?verbose, ?exclude=check, and one check as /readyz/check
// (docs/operations.md, docs/metrics.md). Each manager has its own registry.
//
// # Concurrency and testing
//
// Every method is safe for concurrent use. Only Run and Remove block; Run runs once. Set
// Options.Config to a server of yours, and the addresses to "0" or "127.0.0.1:0". A manager
// without servers runs in a testing/synctest bubble.
package manager
