// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulate is a Kubernetes API server inside the process, with the
// faults that real servers and networks have.
//
//	your code, over rest.Config{Transport: network.Transport()}
//	   │  HTTP
//	   ▼
//	Network          in memory; lost, late, cut     network.go, conn.go
//	   │             or Loopback, for kubectl       loopback.go
//	   ▼
//	Server           who it is, and may it          route.go, authenticate.go,
//	   │                                            authorize.go, rbac.go, faults.go
//	   ├──▶ discovery*.go      which kinds there are; health.go
//	   ├──▶ openapi_*.go       what they look like, by internal/models
//	   ├──▶ read.go            get; list with pages, versions, selectors
//	   │      what is asked for  list_options.go, continue_token.go, selection.go,
//	   │                         field_labels.go
//	   ├──▶ watch.go           one per request, fed from a queue of its own
//	   │      in which form      negotiate.go, encode*.go, encodings.go, table*.go
//	   ├──▶ write.go, write_body.go   create, update, patch
//	   │      decode or patch    write_decode.go, patch.go, apply.go
//	   │      who owns what      managed_fields.go; ownership.go and
//	   │                         recipe.go remember, by shape.go
//	   │      admission          namespaces.go, admission.go
//	   │      prepare, fill      prepare.go, fill.go; internal/defaults
//	   │      validate           validate.go; internal/validation, crdrules
//	   │      commit             create.go, update.go
//	   └──▶ delete.go, subresource.go, scale.go
//	              │  change
//	              ▼
//	        store.go           a CRD comes into force: crd_*.go, schema_custom.go
//	              │
//	              ▼
//	        internal/revisions one counter for all kinds; history; compaction.go
//	              │            past.go: what was there at a revision
//	              │            with a directory: first to the file, keep.go, journal*.go
//	              │  change, dropped, doubled or late
//	              ▼
//	        every open watch, and actors.go: who does its part of the work
//	           internal/actors: one goroutine, one timeline; the garbage collector,
//	           namespaces, workloads; they see the server through a Cluster
//
// # Promises
//
//	S1  one counter numbers the writes of all kinds; a list names the revision
//	    it was true at, and a watch from there tells each later change once, in
//	    order
//	S2  pages of one list show one revision, however much is written meanwhile
//	S3  an object that leaves a selection is deleted for its watch: the old
//	    object at the new resourceVersion
//	S4  a version that is too old is 410, one that is not reached 504 after
//	    three seconds; a watch from a version that is not reached is silent
//	S5  all waiting is such that a testing/synctest bubble's clock goes on, and
//	    after Run nothing is left of it
//	S6  without a fault verb nothing is lost, doubled, late or refused
//	S7  a body that cannot be taken is refused in a real server's words, fields
//	    that the kind does not have are warned of or refused as asked for, and a
//	    refusal stores nothing; no body makes the server panic
//	S8  a write of another version than the stored one is a conflict, a write
//	    that changes nothing is none, and a patch that comes second is tried again
//	S9  each field knows who wrote it; an apply that takes another's is refused
//	    with each field named, unless it is forced
//	S10 a status is written through its subresource, all else is not, and the
//	    generation counts changes of what is not status or metadata
//	S11 what is deleted stays, marked, while finalizers or its grace keep it, and
//	    goes with the last of them
//	S12 a rehearsal (dryRun) answers as the write would, and stores nothing
//	S13 a CRD that makes no sense is refused in a real server's words; what it
//	    defines is served from its creation on, changes with it, at which watches
//	    end and resourceVersions stay, and goes with it, each object told of
//	S14 an object of a custom kind is what its schema demands, with the defaults,
//	    without fields that the schema does not have, and by its rules, those of
//	    transitions too; what was wrong before may stay as it is
//	S15 a webhook that is configured is asked about each write that its rules,
//	    selectors and conditions choose; what it patches is stored, what it denies
//	    is refused in its words, and its silence is what its failure policy says
//	S16 JSON, YAML, protobuf, tables and metadata alone show one object, asked for
//	    alone, in a list or told of; what is kept of a form is bounded
//	S17 objects are selected by the fields that a real server selects their kind
//	    by, and by those that a CRD names; what comes into such a selection is
//	    added for its watch, what leaves it deleted
//	S18 what discovery and the schemas tell of is what is served, from the moment
//	    that a kind is there until it is gone
//	S19 each request is of one user, by its certificate, its token or as whom it
//	    asks to be taken; an unknown or forged token is 401, and a ServiceAccount's
//	    counts as long as what it is bound to is there
//	S20 with Authorization nothing goes through that no rule grants, nobody gives
//	    rights that they do not have, and reviews tell the same
//	S21 with actors, what loses its owners goes or is let go as was asked for,
//	    a namespace that is deleted is emptied and ends, and what is to run
//	    Pods runs them, within its bounds, and says so in its status
//	S22 one seed and the same requests are one history of actors, and an object
//	    more or less moves no step of another
//	S23 with a journal, nobody hears of a change before it is in the file: what was
//	    acknowledged is there after a crash, and a torn record costs itself alone
//	S24 a server that listens takes no address but its own machine's, lets in
//	    nobody without its certificate, and ends with watches open
//	S25 a manifest as people write them is created, and what is stored, with all
//	    its defaults, is what a real server stores
//	S26 a manifest that somebody got wrong is refused with the status that a real
//	    server answers, and for the same fields
//	S27 a Pod that falls short of the Pod Security Standard of its namespace is
//	    refused, and told what it lacks; what falls short of the one that the
//	    namespace warns about is warned of, and labels that name none are refused
//	S28 the protobuf form of an object is, byte for byte, what its Go type writes
//	S29 equal parts of stored objects are one piece of memory, and a list is sent
//	    in parts: it takes no memory as a whole
//	S30 the Service default/kubernetes, by which Pods reach a server, is there
//	    from the start, and again after one
//	S31 parts that the objects of a list have in common are encoded once, and
//	    what is kept of encoded forms is bounded, however long lists are
//
// # What it is not
//
// Some fields of built-in kinds have no rule here, and what controllers and
// kubelets do is done only by actors, when they run. Without
// Options.Authorization rights are an open door with a list of what is refused
// (Deny).
//
// Package kit runs a program against it under a seed, with faults by a plan; a
// Tracer is told what happens, and Heal ends all faults.
//
// # Concurrency
//
// New, NewNetwork and Listen start nothing. Run serves until its context ends, and
// returns when every request has ended; RunActors works until its context ends.
// All methods are safe for concurrent use; none but Run, RunActors, Accept and
// DialContext block.
//
// # Testing
//
// The revision log and the journal's records are pure, and held by tables and by a dull model under
// random programs. All else is driven over HTTP in synctest bubbles, with
// flyball's own informers as guests.
package simulate
