// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package client reads and writes objects on the API server, of built-in kinds
// and of custom resources alike, and shows each write to the informers.
//
//	Create Update Patch PatchChanges CreateOrUpdate       Get, List
//	Apply Delete DeleteAllOf SetFinalizers                Watch, Scale
//	Evict SetScale, Status(), SubResource(name)              │
//	   │                                                     │
//	   ▼                                                     ▼
//	call.go      what is meant: kind, key, options; what cannot be is an error here
//	mapper.go    where it is served: one discovery request per group and version
//	request.go   the request: one rest.RESTClient per group and version
//	retry.go     sent, and sent again where the server asks for that
//	   │                            ▲
//	   ▼                            │
//	  API server ─────────────▶ answer.go    protobuf or JSON, into exactly the caller's type
//	                                │
//	                                ├──▶ the caller's object
//	                                ▼
//	                            observe.go   what the write did: Stored, Removed, Touched
//	                                │
//	                                ▼
//	                            Observer (informer.SharedInformerFactory)
//
// A controller reads from a Lister and writes through a Client:
//
//	c, err := client.New(cfg, scheme, client.Options{Observer: informers, FieldOwner: "website"})
//	…
//	err = c.Apply(ctx, deploymentFor(site))
//
// # Promises
//
//   - C1 There is no cache: each Get and each page of a List is a request, each
//     write is one, and nothing else starts a request save discovery.
//   - C2 Before a write returns, the Observer has been told what it did, in an
//     object that nobody else holds; never of a dry run. It is told that an
//     object is gone only if it is. (The client's part of R4.)
//   - C3 On an error the caller's object is as it was; after success it is what
//     the server answered and nothing else, kind and apiVersion included.
//   - C4 A typed object that is applied claims no value that is empty, and each
//     that is not.
//   - C5 What cannot be is an error before the object is asked for: no name, a
//     namespace missing or too many, an option that does not fit, no field owner.
//   - C6 Errors wrap the server's Status, so that apierrors.IsNotFound and the
//     like hold; a missing kind or subresource never passes for a missing object.
//   - C7 A write with a field that the server does not know is refused, unless
//     Options or the call ask for less. Each warning of the server is logged once.
//   - C8 A request is sent again only if the server asks for that by Retry-After:
//     after 429, which has done nothing, and after 500 or more if doing it twice is
//     doing it once. That holds of get, list, watch and dry runs, of apply, of
//     update and patch that name a resourceVersion, and of delete with
//     Preconditions; not of create, evict or deleteAllOf, nor of other updates and
//     patches. A read is also sent again when its connection breaks. The waiting
//     ends with the context, and after Options.RetryWithin.
//   - C9 A client limited to a namespace by With sends no request that concerns
//     anything outside of it.
//   - C10 PatchChanges sends what differs and nothing else, object and status apart,
//     to the very object that was read, and a list only to the version that it was
//     read from.
//   - C11 A call that would change an object of the cache, by filling it with the
//     server's answer, is an error that names informer.Copy, and nothing is sent.
//   - C12 No answer of more than 128 MiB is read into memory, counted after it was
//     decompressed, nor a frame of a watch: it is a *TooLargeError with the size. One
//     answer of more than 16 MiB is read at a time, and eight of more than 1 MiB. A
//     List whose page is too large goes on in smaller ones. An object that would
//     allocate more than 256 MiB is not decoded; that is a *TooLargeError too.
//   - C13 What is sent and received for Secrets, TokenReviews and TokenRequests is in no
//     error and, at any level, in no log: errors name the field and not the value.
//
// # Concurrency
//
// A Client, its views and its SubResources are safe for concurrent use. Each call blocks
// until the server has answered, its context ends or Options.Timeout has passed. No goroutine is started.
//
// # Testing
//
// The judgement about answers (observe.go) and the leaving out of empty values
// (prune.go) are pure functions with tables and fuzz targets. The rest is tested
// against scripted answers, and by one suite against a real control plane.
package client
