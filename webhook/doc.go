// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhook answers the API server: whether a request is admitted, how its
// object is completed, and what an object looks like in another version.
//
//	API server
//	   │  HTTPS: AdmissionReview, ConversionReview
//	   ▼
//	handler.go       bounds: who, time; share.go: bytes at once   one goroutine per request
//	   │  body
//	   ▼
//	decoding.go      what it becomes in memory, before it does
//	   ▼
//	review.go        decode, call, answer                      pure but for your function
//	   ├──▶ Validate   your function says no, or nothing
//	   ├──▶ Mutate     your function changes the object ──▶ patch.go: what changed
//	   └──▶ Convert    version ──▶ hub ──▶ version              conversion.go
//
//	internal/keypair the pair that is served                   lock: Holder
//	   ▲ files of CertDir, or
//	   │ Managed: a Secret that all replicas share; keyring.go decides
//	   └──────▶ inject.go: who is to trust it: webhook configurations, CRDs
//
// # Promises
//
//	H1  a review is answered with its uid, or its sender is told what is wrong with
//	    it; no body, no panic and no flood of them ends the server or takes more
//	    memory than Options.MaxBody lets it
//	H2  a patch has what the function changed and nothing else: fields that the Go
//	    type does not know stay as they are
//	H3  a conversion answers with all objects in their order, or none; each is of
//	    the version that was asked for and has the metadata that it had, save for
//	    labels and annotations
//	H4  what is served is the best whole pair that was found, without a restart:
//	    files that are missing, half written or expired replace nothing that works
//	H5  what any replica serves is trusted by what was injected, at each moment of
//	    a rotation; replicas that act at once agree on one Secret
//	H6  a stop ends nothing that is under way, and new requests are answered until
//	    Options.DrainDelay has passed
//	H7  a review is weighed before it is decoded: one that would allocate more than
//	    Options.MaxDecoded is refused with its size, and large ones are decoded one
//	    at a time
//	H8  with Options.ClientCAs nobody has an admission answered who does not show a
//	    certificate that they have signed, for a name that is allowed
//
// # Verdicts and faults
//
// An error that a function of Validate or Mutate returns is a verdict: the request
// is denied. An error of apierrors passes as it is; any other becomes Forbidden with
// its text. A panic, a request for another kind than the function takes, and a
// function that outlasts the server's patience are no verdicts: they are answered
// as errors of HTTP, so that failurePolicy decides. They are logged, a panic with
// its stack.
//
// # Certificates
//
// Without Managed the pair lies in files, which another program renews: tls.crt and
// tls.key in CertDir. With Managed the server makes a certificate authority and a
// pair, keeps both in a Secret, renews them, and writes the authority into the
// configurations that name its Service. A new authority is trusted everywhere before
// anything is signed by it, and the old one until it expires.
//
// Nothing waits for a certificate but readiness: Started is closed when the port is
// open, and Check says why nobody can be served yet.
//
// # Concurrency
//
// Every method is safe for concurrent use. Run alone blocks, and runs once. The
// functions given to Validate, Mutate and Convert are called by many requests at
// the same time; what they are given is theirs alone.
//
// # Testing
//
// Server is an http.Handler: give it requests without a network. What decides about
// bodies, patches, conversions and key rings is pure, and is held by tables and
// fuzz. The whole is tested on a real API server.
package webhook
