// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhook serves admission and conversion webhooks: it validates and mutates
// objects, and converts them between versions of their kind.
//
//	API server
//	   │  HTTPS: AdmissionReview, ConversionReview
//	   ▼
//	handler.go       who may call, how long; share.go: bytes    one goroutine per request
//	   │  body
//	   ▼
//	decoding.go      how much memory decoding would take
//	   ▼
//	review.go        decode, call, answer                      pure, except your function
//	   ├──▶ Validate   your function admits or denies
//	   ├──▶ Mutate     your function changes the object ──▶ patch.go: what changed
//	   └──▶ Convert    version ──▶ hub ──▶ version              conversion.go
//
//	internal/keypair the certificate that is served            lock: Holder
//	   ▲ files of CertDir, or
//	   │ Managed: a Secret shared by all replicas; keyring.go decides
//	   └──────▶ inject.go: the CA bundle of webhook configurations and CRDs
//
// # Promises
//
//	H1  a review is answered with its uid, or its sender gets an error; no body, panic
//	    or flood of requests ends the server or takes more memory than Options.MaxBody
//	    allows
//	H2  a patch contains what the function changed and nothing else: fields unknown to
//	    the Go type are preserved, and go to no other element of their list; where it
//	    is not certain whose they are, the review fails
//	H3  a conversion answers with all objects in their order, or with none; each has
//	    the desired version and its metadata unchanged, except for labels and
//	    annotations
//	H4  the server uses the best complete certificate that it has found, without a
//	    restart: missing, half-written or expired files replace no working certificate
//	H5  at each moment of a rotation, what any replica serves is trusted by the CA
//	    bundles; replicas that act at the same time agree on one Secret
//	H6  a stop interrupts no request in flight, and new requests are answered until
//	    Options.DrainDelay has passed
//	H7  a review is weighed before it is decoded: one that would allocate more than
//	    Options.MaxDecoded is refused with its size, large ones are decoded one at a
//	    time, and a number that takes far more than its text is refused unparsed
//	H8  with Options.ClientCAs only clients with a certificate signed by one of them,
//	    for an allowed name, get an answer to an admission review
//
// # Verdicts and faults
//
// An error that a function of Validate or Mutate returns denies the request. An error of
// apierrors is passed on as it is; any other becomes Forbidden with its text. A panic, a
// request for another kind than the function takes, and a function that runs longer than
// the server waits are not verdicts: they are answered as HTTP errors, so failurePolicy
// decides. They are logged, a panic with its stack.
//
// # Certificates
//
// Without Managed, another program keeps the certificate in files: tls.crt and tls.key in
// CertDir. With Managed the server creates a certificate authority and a certificate,
// keeps both in a Secret, renews them, and writes the CA bundle into the configurations
// that name its Service. A new authority is in every bundle before it signs anything, and
// the old one stays there until it expires.
//
// Only readiness waits for a certificate: Started is closed when the port is open, and
// Check says why requests cannot be served yet.
//
// # Concurrency
//
// Every method is safe for concurrent use. Only Run blocks, and it runs once. The
// functions given to Validate, Mutate and Convert are called concurrently; each call has
// its own objects.
//
// # Testing
//
// Server is an http.Handler: give it requests without a network. Bodies, patches,
// conversions and key rings are decided by pure functions with tables and fuzz targets.
// The whole is tested on a real API server.
package webhook
