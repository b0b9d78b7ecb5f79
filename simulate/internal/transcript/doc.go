// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package transcript measures the fidelity of package simulate: it sends the same requests
// to the simulated and to a real Kubernetes API server, and compares all answers.
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
// The transcripts under testdata/golden are the answers of a real server, so tests compare
// the simulated server with them and need no real one. Package recorded compares them with
// a real server, which package envtest starts.
//
// The manifests under testdata/corpus are cases too: each is created, and the changes that
// the server makes are compared (corpus.go, changes.go).
//
// Besides written cases there are programs generated from seeds (program.go), and each case
// with its bodies broken (broken.go).
//
// # kubectl
//
// The stories under testdata/kubectl are the output of a real kubectl against a real server,
// command by command. A test runs the same kubectl against the simulated server and compares.
// After a change of a story's commands,
//
//	go test ./simulate/internal/transcript -run Kubectl -record
//
// runs them against a real server and records the output. Times, uids, revisions and addresses
// are replaced. That server has no controllers, so a rollout that makes progress cannot be
// recorded. The stories under testdata/actors run against a simulated server with actors, and
// their output is written by hand.
//
// # Shards
//
// The shard of an object (KEP-5866) follows from its uid, which differs between any two
// servers, so there are no transcripts of requests with a shard selector. A test asks the
// simulated server, and a real one with the feature gate ShardedListAndWatch, the same, and
// compares facts that do not depend on uids. The servers of the transcripts are without that
// gate.
//
// BenchmarkCost compares the cost of both servers in processor time and memory.
//
// # Cases
//
// A case begins with a line "-- name --" and runs in its own namespace, $ns, which exists.
// A step is a line, with the lines below it up to an empty one; lines with # between steps
// are comments:
//
//	POST $cms
//	@Accept: application/yaml
//	{"metadata":{"name":"a"}}
//
// A method in capitals is a request. Lines with @ are its headers or, in lower case, words
// for the runner; the rest is its body, which may also follow the path. The words for the
// runner:
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
// Bodies and paths may contain $name, $(repeat:n:text), $(nest:n:text) and $(add:name:n). A
// body "hex 6b 38" is sent as these bytes, and JSON as protobuf if that is its
// Content-Type. To show that a watch does not send an event, a case writes a marker
// afterwards and awaits that alone.
//
// The webhooks that a server calls are at $hooks, with the certificate $trust
// (webhooks.go). A real server calls a webhook only some time after its configuration
// changes: a case waits by polling with dry runs.
//
// A case must not depend on concurrent requests of others: objects outside namespaces have
// $ns in their name and are read by it, and kinds are defined in the group $group.
//
// # Guarantees
//
// The transcript of a case is exactly what a real server answers. The simulated server
// answers each case as in its transcript, or simulate/FIDELITY.md says what differs and
// why; a difference that no longer exists must be removed from there.
//
// # Concurrency
//
// Run starts a goroutine for each watch of its case, and returns when all have ended. Two
// runs share nothing.
//
// # How to test
//
//	go test ./simulate/internal/transcript -run 'TestCases/list/limit'
//	    one case on the simulated server
//	go test ./simulate/internal/transcript/recorded -run 'TestReal/cases/list/limit' -update
//	    one case on a real server, whose answers become the transcript
//	make transcripts
//	    all transcripts against a real server; UPDATE=1 writes them
//	make transcripts SEEDS=500
//	    five hundred programs on both servers
//
// In package recorded, -server names the kubeconfig of a running server to use instead of
// starting one.
package transcript
