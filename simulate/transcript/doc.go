// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package transcript measures how true package simulate is: it sends the same
// requests to the simulated and to a real Kubernetes API server, and compares
// all that comes back.
//
//	testdata/cases/list.txt                        load.go, case.go
//	   │  steps
//	   ▼
//	Run ──requests──▶ a server                     player.go, variables.go
//	   │  ◀──answers, frames of watches──          body.go, stream.go
//	   ▼
//	what no two servers have in common is replaced normalise.go, revisions.go
//	   │  entries
//	   ├──▶ testdata/golden/list.txt               golden.go
//	   ▼
//	Diff                                           diff.go
//	   │  less what simulate/FIDELITY.md knows     ledger.go
//	   ▼
//	the test's verdict
//
// The transcripts under testdata/golden are what a real server answered. So the
// simulated server is held against them without one; package recorded holds
// them against a real server, which package envtest starts.
//
// The manifests under testdata/corpus are cases too: each is created, and what
// the server makes of it is compared (corpus.go, changes.go).
//
// Besides the cases that people wrote there are programs drawn from seeds
// (program.go), and each case with its bodies broken (broken.go).
//
// # Cases
//
// A case begins with a line "-- name --" and runs in a namespace of its own,
// $ns, which is there. A step is a line, with lines below it up to an empty
// one; lines with # between steps are comments:
//
//	POST $cms
//	@Accept: application/yaml
//	{"metadata":{"name":"a"}}
//
// A method in capitals is a request. Lines with @ are its headers, or, in small
// letters, words to the runner; the rest is its body, which may also follow the
// path. The words to the runner:
//
//	@only: .metadata .items[0]  notes only these parts of the answer
//	@silent: true               notes nothing; a refusal ends the case
//	@changes: true              notes what the answer has otherwise than the body
//	@as: nobody                 sends no credentials
//
// Other steps are
//
//	watch w $cms?resourceVersion=0  opens a stream, and gives it the name w
//	await w 3                       notes its next three frames, bookmarks not
//	                                counted
//	await w bookmark                notes all frames up to a bookmark
//	await w marker                  up to an object of that name
//	await w end                     up to the stream's end
//	save rv .metadata.resourceVersion   keeps a part of the last answer as $rv;
//	                                what follows stands for one that is not there
//	set rv 7                        keeps a text
//	poll 200 $crds/x                asks until the status is this; notes nothing
//	poll 418 POST $cms {}           the same with another method, and a body
//	use three                       plays a case of shared.txt, unnoted
//
// Bodies and paths may say $name, $(repeat:n:text), $(nest:n:text) and
// $(add:name:n). A body "hex 6b 38" is sent as these bytes, and JSON as protobuf
// when that is its Content-Type. That something does not come on a watch is
// shown by writing a marker after it, and awaiting that alone.
//
// A server that is to ask webhooks finds them at $hooks, with the certificate
// $trust (webhooks.go). A real one asks a moment after it is told to: a case
// waits by polling with rehearsals.
//
// A case must not depend on what others do to the server at the same time: what
// lies outside namespaces carries $ns in its name and is asked for by it, and
// kinds are defined in the group $group.
//
// # What it holds
//
// What a real server answers to a case is in its transcript, and a transcript
// is what a real server answers. The simulated server answers each case as its
// transcript says, or simulate/FIDELITY.md says what differs and why; a
// difference that is gone may not stay there.
//
// # Concurrency
//
// Run starts a goroutine for each watch of its case, and returns when all have
// ended. Nothing is shared between two runs.
//
// # How to test
//
//	go test ./simulate/transcript -run 'TestCases/list/limit'
//	    one case on the simulated server
//	go test ./simulate/transcript/recorded -run 'TestReal/cases/list/limit' -update
//	    one case on a real server, whose answers become the transcript
//	make transcripts
//	    all transcripts against a real server; UPDATE=1 writes them
//	make transcripts SEEDS=500
//	    five hundred programs on both servers
//
// In package recorded, -server names the kubeconfig of a running server to use
// instead of one that the test starts.
package transcript
