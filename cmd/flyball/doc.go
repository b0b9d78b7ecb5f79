// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command flyball writes the module of a new operator, adds to it, and makes its
// CustomResourceDefinitions, image, Helm chart and OLM bundle. It also edits an operator that is
// written with controller-runtime to use Flyball's informers.
//
//	go run github.com/flyball-dev/flyball/cmd/flyball@latest new example.com/me/database --kind Database
//
// The module has a kind with its CRD, a reconciler, tests on a simulated and on a real API
// server, RBAC rules, a Dockerfile, manifests for kustomize, a Makefile and a workflow for
// continuous integration. `go run .` works at once, without a cluster.
//
//	flyball new MODULE --kind Database
//	   --children Deployment,Service   kinds that the operator keeps for each Database
//	   --group databases.example.com   API group; by default the host of MODULE
//	   --webhook                       a validating webhook
//	   --replicas 3                    replicas that share the objects
//	   --no-crd                        no kind of its own: --kind is ConfigMap, Namespace, …
//	   --dir DIR                       by default the last element of MODULE
//	   --replace DIR                   build with a clone of Flyball
//
// In a clone, such as before there is a release, `go run ./cmd/flyball` is the command, with
// `--replace .` and a --dir outside of the clone.
//
// Every file belongs to you. In its directory,
//
//	flyball add kind --kind Backup --children Job
//	flyball add webhook --kind Database
//	flyball add version --kind Database --version v2
//	flyball add replicas 3
//	flyball add shard --name a
//
// add files, and lines where the new code is called.
//
//	flyball adopt
//	   -C DIR                          module of an operator of controller-runtime 0.24 or 0.25
//	   -check                          only say what stands in the way
//	   -n                              do not run the go command
//	   -undo                           remove what it has added
//	   -version VERSION                of the bridge; by default that of flyball
//
// wraps the options of each manager by bridge.Options and completes go.mod: see
// docs/migration.md.
//
//	flyball doctor -crds config/crd -samples config/samples -- ./my-operator
//
// finds what an operator in any language does wrong after a crash, with a stale cache, and so on: see
// docs/doctor.md.
//
//	flyball crds -o config/crd.yaml ./api/...
//	flyball pack image, chart, bundle or sbom
//
// write what is generated: see docs/kinds.md and docs/packaging.md.
//
// # Promises
//
//	Q1  a written module builds and passes go vet and its tests without a change
//	Q2  it has at most 17 files, go.sum not counted, a Makefile of less than 60 lines, and
//	    no line above 100 columns except those that flyball crds and the go command write
//	Q3  invalid input is an error that says what to write instead, and then nothing is
//	    written
//	Q4  the template is examples/operator: the command with its names gives its files
//	Q5  an addition inserts lines and makes files; no line that is there is changed or
//	    removed, but for the number of replicas and the rights to the leader's Lease, which
//	    flyball add replicas replaces; if it cannot be made, nothing is written
//	Q6  an added version changes neither what is stored nor what the reconciler uses;
//	    its objects and those of the stored version are read as the other
//	Q7  flyball adopt changes only the options and the imports of managers; -undo gives back
//	    the same bytes, and so does an error, also for go.mod and go.sum
//
// # Testing
//
// The tests write modules into temporary directories, build them and run their tests.
package main
