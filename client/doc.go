// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package client reads and writes objects on the API server, built-in kinds and
// custom resources alike, and shows each write to the informers.
//
//	c, err := client.New(cfg, scheme, client.Options{Observer: informers, FieldOwner: "website"})
//	…
//	err = c.Apply(ctx, deploymentFor(site))
//
//	Create Update Patch PatchChanges CreateOrUpdate       Get, List
//	Apply Delete DeleteAllOf SetFinalizers                Watch, Scale
//	Evict SetScale, Status(), SubResource(name)              │
//	   │                                                     │
//	   ▼                                                     ▼
//	kind, key, options (call.go), resource (mapper.go), request, retries ──▶ API server
//	                                                                             │
//	Observer ◀── the effect of a write: Stored, Removed, Touched ◀── effects ◀───┘
//	(informer.SharedInformerFactory)     (internal/effects)              │
//	                                                                     ▼
//	                                                            the caller's object
//
// # Promises
//
//   - C1 There is no cache: each Get, page of a List and write is one request (C16 omits
//     some, C17 may read first), and nothing but discovery sends others.
//   - C2 Before a write returns, the Observer has received its effect, with an object that is
//     not shared, and the answer for caches of other Go types. It receives no dry run, and
//     Removed only for an object that is gone. (The client's part of R4.)
//   - C3 On an error the caller's object is unchanged; after success it is exactly
//     what the server answered (C16: what the cache has), kind and apiVersion included.
//   - C4 Applying a typed object claims each field that it prints, except null, empty
//     structs, and empty ones with omitempty. stringData is applied as data.
//   - C5 Misuse is an error before the object is requested: no name, field owner, or version
//     of an update, a missing or superfluous namespace, an option that does not fit.
//   - C6 Errors wrap the server's Status, so apierrors.IsNotFound and the like work; a
//     missing kind or subresource is never reported as a missing object.
//   - C7 A write with a field that the server does not know is refused, unless
//     Options or the call relax that. Each warning of the server is logged once.
//   - C8 A request is retried only if the server asks for it with Retry-After: after
//     429, which has no effect, and after 500 or more if the request is idempotent.
//     Idempotent are get, list, watch and dry runs, apply, update and patch that name
//     a resourceVersion, and delete with Preconditions. A read is also retried when its
//     connection breaks. Retries end with the context, and after Options.RetryWithin. With
//     OmitOwnEvents, an apply with IfChanged first names the cached version.
//   - C9 A client limited to a namespace by With sends no request outside of it.
//   - C10 PatchChanges sends only what differs, object and status separately, and only to the
//     object that was read (by UID), lists to its version.
//   - C11 A call that would overwrite an object of the cache, or write one without what its
//     informer drops (D4), is an error with the fix, and nothing is sent.
//   - C12 An answer or frame of a watch of more than 128 MiB after decompression, and an object
//     that would allocate more than 256 MiB, is a *TooLargeError. One answer above 16 MiB is
//     read at a time, and eight above 1 MiB. A List continues in smaller pages.
//   - C13 The content of Secrets, TokenReviews and TokenRequests is in no error and, at
//     any level, in no log: errors name the field and not the value.
//   - C14 A failed write that may have taken effect is reported as Touched. The client, not the
//     server, turns a generateName into a name.
//   - C15 Requests of a client with an Observer say so in their context, against double reports.
//   - C16 IfChanged omits an apply only if it would change nothing: this client's last one
//     within the hour wanted the same, and the cache has what was answered but for the
//     status, which must explain a newer version.
//   - C17 PatchChanges, CreateOrUpdate and MergeFrom keep what the Go type does not know of
//     elements of lists, or return an UnknownFieldsError.
//   - C18 HandOver gives an apply what was written by Update, once per object.
//
// # Concurrency
//
// A Client, its views and SubResources are safe for concurrent use. Each call blocks until the
// server has answered, its context ends or Options.Timeout has passed. No goroutine is started.
//
// # Testing
//
// Pure functions (internal/effects, internal/applied, prune.go, elements.go) have tables and
// fuzz targets. The rest is tested against scripted answers, and on a real control plane.
package client
