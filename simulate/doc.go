// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulate is an in-process Kubernetes API server with the faults of real
// servers and networks. Package simtest starts one for a test; package kit runs a program
// against it with a seed and a plan of faults.
//
//	your code, over rest.Config{Transport: network.Transport()}
//	   │  HTTP
//	   ▼
//	Network, in memory: lost, late, cut; or Loopback, for kubectl
//	   ▼
//	Server ── who it is, and may it (internal/access); faults
//	   ├──▶ discovery, get, list, watch ──▶ internal/encode
//	   └──▶ create, update, patch, apply, delete
//	              decode, internal/fieldmanager, admission, defaults, validation
//	              ▼  change
//	        internal/store: revisions of all kinds, with history; a journal
//	              ▼  change, dropped, doubled or late
//	        every open watch; internal/actors, which do the work of controllers and kubelets
//
// ARCHITECTURE.md describes each step.
//
// # Promises
//
//	S1  one counter numbers the writes of all kinds; a list names its revision, and a watch
//	    from there delivers each later change once, in order
//	S2  pages of one list show one revision, whatever is written meanwhile
//	S3  an object that leaves a selection is deleted for its watch: the old object at the
//	    new resourceVersion
//	S4  a version that is too old is 410, one in the future 504 after three seconds; a
//	    watch from a future version is silent
//	S5  all waits let the clock of a testing/synctest bubble advance, and nothing runs
//	    after Run
//	S6  without a fault nothing is lost, duplicated, late or refused
//	S7  an invalid body is refused with a real server's message and stores nothing; unknown
//	    fields cause a warning or an error as requested; no body makes the server panic
//	S8  a write with a stale version is a conflict, a write that changes nothing makes no
//	    revision, and a patch that loses a race is retried
//	S9  each field has its owner; an apply that takes another's field is refused with each
//	    field named, unless it is forced
//	S10 only the status subresource writes the status, and nothing else; the generation
//	    counts changes outside status and metadata
//	S11 a deleted object stays, marked, until its finalizers and its grace period are gone
//	S12 a dry run answers as the write would, and stores nothing
//	S13 an invalid CRD is refused with a real server's message; its kind is served from its
//	    creation on, changes with it, which ends watches and keeps resourceVersions, and is
//	    removed with it, with an event for each object
//	S14 an object of a custom kind satisfies its schema, has its defaults and no unknown
//	    fields, and follows its rules, also for transitions; invalid fields from before may
//	    stay unchanged
//	S15 a webhook is called for each write that its rules, selectors and conditions match;
//	    its patch is stored, its denial returned, and its failure policy handles failures
//	S16 JSON, YAML, protobuf, tables and metadata show the same object, in a get, a list or
//	    a watch
//	S17 objects are selected by the fields that a real server supports for their kind, by
//	    those that a CRD declares, and by shard; a watch adds objects that enter such a
//	    selection, and deletes those that leave it
//	S18 discovery and the schemas list exactly what is served at that moment
//	S19 each request has one user, by certificate, token or impersonation; an unknown or
//	    forged token is 401, and a ServiceAccount's token is valid for as long as the object
//	    exists that it is bound to
//	S20 with Authorization only requests that a rule grants pass, no user can grant more
//	    than its own permissions, and access reviews agree with that
//	S21 with actors, objects that lose their owners are deleted or orphaned as requested, a
//	    deleted namespace is emptied and ends, and workloads run Pods, within their bounds,
//	    and report them in their status
//	S22 one seed and the same requests give one history of actors, and adding or removing
//	    an object changes no step of another
//	S23 with a journal, a change is visible only after it is in the file: acknowledged
//	    writes survive a crash, and a torn record loses only itself
//	S24 unless ListenOptions says otherwise a listening server uses only addresses of its own
//	    machine and accepts only clients with its certificate; it can stop while watches are
//	    open
//	S25 an ordinary manifest is accepted and stored with all defaults, as by a real server
//	S26 an invalid manifest is refused with the status of a real server, for the same fields
//	S27 a Pod that violates the Pod Security Standard of its namespace is refused with the
//	    reasons, or causes a warning; labels that name no standard are refused
//	S28 the protobuf form of an object is, byte for byte, what its Go type writes
//	S29 equal parts of stored objects share memory; a list is streamed in parts, and one in
//	    protobuf holds at most 128 MiB, compressed, half of it until its length is known and
//	    half for the next list
//	S30 the Service default/kubernetes, by which Pods reach a server, exists from the start,
//	    and again after a restart
//	S31 common parts of the objects of a list are encoded once, a long list in protobuf
//	    encodes each object once and later lists what has changed, within the bound of S29,
//	    and the cache of encoded forms is bounded, however long lists are
//
// Without Options.Authorization every request is allowed, except those that Deny refuses.
// A Tracer receives what happens, and Heal ends all faults. simulate/FIDELITY.md says
// where a real server differs.
//
// # Concurrency
//
// New, NewNetwork and Listen start nothing. Run serves until its context ends and every
// request has ended; RunActors works until its context ends. All methods are safe for
// concurrent use; only Run, RunActors, Accept and DialContext block.
//
// # Testing
//
// The server works in a testing/synctest bubble. Its tests use it over HTTP, with
// flyball's own informers as clients, and compare it with a real server.
package simulate
