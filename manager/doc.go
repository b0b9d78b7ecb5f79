// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager runs the controllers of one process: it starts everything in
// one order, stops it in the reverse, and says how it goes.
//
//	        Run(ctx)                                      ctx ends, or a fault
//	           │                                                   ▲
//	           ▼                                                   │
//	┌─ servers ──────── health, metrics ───────── last to stop ────┤
//	├─ webhooks ─────── admission, conversion                      │
//	├─ informers ────── lists and watches                          │
//	├─ standby ──────── what works on every replica                │
//	├─ leadership ───── started when this process leads            │
//	└─ controllers ──── sources, queue, workers ── first to stop ──┘
//
// The drawing is the table in stage.go: a stage more is a row more. New makes
// all of it and starts nothing, and no request is sent before Run.
//
// # Promises
//
//	M1  stages start in one order and stop in the reverse
//	M2  stop means: no new work, drain, then give the lease back, and only then the
//	    informers, the servers last; the lease is kept while what it guards goes on
//	M3  a write that begins when the lease cannot be trusted any more is refused by
//	    the client, and not sent
//	M4  ready means synced; alive means progress
//	M5  a standby is synced and its queues are filled; after a released lease it
//	    reconciles without waiting for anything but the lease
//	M6  what is guarded answers only who may ask, as the API server says; nobody when
//	    it cannot be asked
//	M7  events told before the stop are sent before it ends, within the grace period
//	M8  no client made of Config writes past the gate, however its configuration was
//	    copied, wrapped or stripped: one that has lost the gate gets no connection
//	M9  servers on loopback answer only requests for this machine's own hosts and for
//	    those that Options.AllowedHosts name
//	M10 what must progress and stands still for Options.StuckAfter, while work waits for
//	    it, fails /livez under its name, with the stack of what hangs; a process that was
//	    frozen, slow reconciles that may be slow and a server that does not answer do not.
//	    Probes, metrics and Snapshot answer meanwhile
//	M11 a stop gives the lease back after the last guarded write was answered; when it is
//	    not known what became of one, the lease is kept until it expires
//
// A stop is what follows when the context of Run ends or when something that
// runs returns an error, whose reason then is what Run returns. From that
// moment /readyz says no and Add refuses. Controllers finish the reconciles
// they hold while their informers go on. The whole is bounded by
// Options.GracePeriod; what has not ended by then is named by the error of Run.
//
// # Leadership
//
// With Options.LeaderElection the replicas of a program agree by a Lease which of
// them works. All are ready and run what is in the stages up to StageStandby: there
// the sources of controllers fill their queues, while the workers wait. A watch of
// the Lease wakes them when it is given back. Who led and cannot renew, or sees
// another's name in the Lease, cuts off what its controllers do and ends Run with
// ErrLeadershipLost. In a stop that drains already they go on, and only their writes
// are refused. A Lease that somebody deletes counts as one that is not renewed.
//
// Client and what is made of Config write through a gate, which counts from before
// the last renewal that succeeded was sent, by the stricter of the wall clock and the
// one that only runs, and trusts nine tenths of the lease's time. A write ends with
// the lease. One that has left the process when that happens is outside the promise:
// the gate cannot call it back, and the error says that nobody knows. StandbyClient
// and StandbyConfig are for what every replica does, and no gate is in their way.
//
// # Options
//
// Options come from the program; BindFlags has flags, variables and a file change them.
//
// # Health
//
// /readyz answers 200 when every informer and every controller has synced, and
// 503 otherwise, naming each scope that has not, its state, since when, and the
// server's reason. /livez (and /healthz) answers 500 in two cases. A reconcile goes on
// for a minute after its context was cancelled at its hard deadline, so that a worker
// is lost. Or something has stood still for Options.StuckAfter while work waits for it:
// a handler with its mappers and predicates, the store or the transform of an informer,
// all workers of a controller, the elector. The answer names it, and shows where
// it hangs: the stacks of up to four workers or functions. Only the time in which the process ran counts, by a clock that nobody sets:
// what was frozen with the process is not stuck. A request that a reconcile makes shows
// that its worker moves, so a
// server that cannot be reached, slow reconciles and errors never count as
// dead, since a restart heals none of them. All three take ?verbose and
// ?exclude=check, and one check alone as /readyz/check, as Kubernetes'
// components do.
//
// The check saturation:CONTROLLER of /readyz fails when all workers have stood still for
// half of StuckAfter while keys wait. Options.ReadyWhenSaturated has it not count.
//
// What waits for a kind that this very process converts by webhook does not count
// for /readyz, and ?verbose says so: nobody asks a process that is not ready to
// convert anything. Nor does what waits to lead and cannot stand by. The webhooks
// themselves count: their port is open, and their certificate is valid.
//
// # Webhooks
//
// Webhooks is the server of package webhook. It serves on every replica, whether it
// leads or not, before the informers begin and until Webhooks.DrainDelay has passed
// since a stop has begun.
//
// # Metrics
//
// /metrics shows, under the names that dashboards expect, the work queues
// (workqueue_…), the controllers (controller_runtime_…), the requests
// (rest_client_requests_total), the Go runtime and the process, and under our
// own the informers (flyball_informer_…). Every manager has a registry of its
// own; the numbers are read when they are asked for.
//
// Options.MetricsServing has them served over TLS, shows profiles beside them, and
// guards both: a request needs the token of a user who has the right to its path and
// method. The API server is asked for each user once a minute, for each right once in
// five, for each no after 30 seconds, and once for all who ask the same at once.
// When it does not answer, nobody is let in; no token is kept or logged.
//
// # Tracing
//
// With Options.TracerProvider the manager's controllers make spans (see TraceTo of
// reconcile.Controller), and so do the requests whose context has a span.
//
// # Concurrency
//
// Every method is safe for concurrent use; Run alone blocks, and runs once.
// Any number of managers live in one process.
//
// # Testing
//
// Give Options.Config a server of yours (package envtest has a real one) and
// "0" or "127.0.0.1:0" for the addresses. A manager without servers lives in a
// [testing/synctest] bubble.
package manager
