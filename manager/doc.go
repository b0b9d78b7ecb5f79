// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager runs the controllers of one process: it starts everything in order,
// stops it in reverse, and reports its health.
//
//	        Run(ctx)                                      ctx ends, or an error
//	           │                                                   ▲
//	           ▼                                                   │
//	┌─ servers ──────── health, metrics ───────── last to stop ────┤
//	├─ webhooks ─────── admission, conversion                      │
//	├─ informers ────── lists and watches                          │
//	├─ standby ──────── what runs on every replica                 │
//	├─ leadership ───── reached when this process leads            │
//	└─ controllers ──── sources, queue, workers ── first to stop ──┘
//
// The drawing is the table in stage.go. New creates all of it and starts nothing; no
// request is sent before Run.
//
// # Promises
//
//	M1  stages start in order and stop in reverse
//	M2  a stop takes no new work, drains, then releases the lease, then stops the
//	    informers, and the servers last; the lease is kept while guarded work continues
//	M3  a write that begins when the lease can no longer be trusted is refused by the
//	    client and not sent
//	M4  ready means synced; alive means progress
//	M5  a standby is synced and its queues are filled; after a released lease it
//	    reconciles without waiting for anything but the lease
//	M6  guarded endpoints answer only users whom the API server authorizes, and nobody
//	    while it cannot be asked
//	M7  Events recorded before the stop are sent before it ends, within the grace period
//	M8  no client made from Config writes past the gate, however its configuration was
//	    copied, wrapped or stripped: one that has lost the gate gets no connection
//	M9  servers on loopback answer only requests for this machine's own hosts and for
//	    Options.AllowedHosts
//	M10 a part that makes no progress for Options.StuckAfter while work waits for it
//	    fails /livez under its name, with the stack of what hangs; a process that was
//	    frozen, slow reconciles and an unreachable server do not. Probes, metrics and
//	    Snapshot answer meanwhile
//	M11 a stop releases the lease after the last guarded write was answered; if the
//	    outcome of one is unknown, the lease is kept until it expires
//
// A stop begins when the context of Run ends or when something that runs returns an
// error, which Run then returns. From that moment /readyz fails and Add refuses.
// Controllers finish the reconciles in flight while their informers keep running.
// Options.GracePeriod bounds the stop; the error of Run names what has not ended by then.
//
// # Leadership
//
// With Options.LeaderElection the replicas of a program elect a leader by a Lease. All
// replicas are ready and run the stages up to StageStandby: there the sources of
// controllers fill their queues while the workers wait. A watch of the Lease starts them
// as soon as it is released. A leader that cannot renew the Lease, or sees another
// identity in it, cancels its reconciles and ends Run with ErrLeadershipLost; during a
// drain they continue, and only their writes are refused. A deleted Lease counts as one
// that was not renewed.
//
// Client, and every client made from Config, write through a gate. It trusts the lease
// for nine tenths of its duration, counted from before the last successful renewal was
// sent, by the stricter of the wall clock and the monotonic clock. A write ends with the
// lease. A write that has left the process by then is outside the promise: the gate
// cannot recall it, and its error says that the outcome is unknown. StandbyClient and
// StandbyConfig, for what every replica does, do not pass the gate.
//
// # Options
//
// The program sets Options; BindFlags lets flags, environment variables and a file
// override them.
//
// # Health
//
// /readyz answers 200 when every informer and every controller has synced. Otherwise it
// answers 503 and names each scope that has not, with its state, since when, and the
// server's reason.
//
// /livez (and /healthz) answers 500 in two cases. Either a reconcile still runs a minute
// after its context was cancelled at its hard deadline, which loses a worker. Or a part
// has made no progress for Options.StuckAfter while work waits for it: a handler with its
// mappers and predicates, the store or the transform of an informer, all workers of a
// controller, the elector. The answer names the part and shows the stacks of up to four
// workers or functions. Only time in which the process ran counts, by the monotonic
// clock. A request that a reconcile sends shows that its worker makes progress. Slow
// reconciles, errors and an unreachable server do not fail /livez, because a restart
// would not help.
//
// All three take ?verbose and ?exclude=check, and a single check as /readyz/check, as
// the components of Kubernetes do.
//
// The check saturation:CONTROLLER of /readyz fails when all workers of a controller have
// made no progress for half of StuckAfter while keys wait. With
// Options.ReadyWhenSaturated it does not count.
//
// What waits for a kind that this process itself converts by webhook does not count for
// /readyz, and ?verbose says so: a process that is not ready is not asked to convert
// anything. Nor does a runnable that waits for leadership and cannot run in a standby.
// The webhooks themselves count: their port must be open and their certificate valid.
//
// # Webhooks
//
// Webhooks is the server of package webhook. It serves on every replica, leader or not,
// starts before the informers, and ends when Webhooks.DrainDelay has passed after the
// stop began.
//
// # Metrics
//
// /metrics has the work queues (workqueue_…), the controllers (controller_runtime_…),
// the requests (rest_client_requests_total), the Go runtime and the process under the
// names that dashboards expect, and the informers under flyball_informer_…. Every
// manager has its own registry; values are read when they are scraped.
//
// Options.MetricsServing serves them over TLS, adds profiles, and guards both: a request
// needs the token of a user who may access its path with its method. The API server is
// asked once a minute for each user, once in five minutes for each permission, once in 30
// seconds for each denial, and once for concurrent requests with the same question. While
// it does not answer, every request is refused. No token is kept or logged.
//
// # Tracing
//
// With Options.TracerProvider the manager's controllers create spans, and so do requests
// whose context has a span.
//
// # Concurrency
//
// Every method is safe for concurrent use. Only Run blocks, and it runs once. A process
// can have any number of managers.
//
// # Testing
//
// Set Options.Config to a server of yours (package envtest has a real one) and the
// addresses to "0" or "127.0.0.1:0". A manager without servers runs in a
// [testing/synctest] bubble.
package manager
