// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package crds is flyball crds, which writes the CustomResourceDefinitions of Go types.
//
//	flyball crds -o config/crd.yaml ./api/...          writes the file
//	flyball crds -o config/crd.yaml -check ./api/...   prints a diff and exits with 1 if the file differs
//
// Here flyball is go run github.com/flyball-dev/flyball/cmd/flyball@latest, or of a module that
// flyball new has written, make crd: the one of the Flyball in go.mod, a version or a clone.
//
// The kinds are the arguments of resource.Define, whose group and version it reads, and, in
// packages with a +groupName marker, the structs that embed TypeMeta and ObjectMeta. Kinds
// of one name in one group are versions of one CustomResourceDefinition: give all their
// packages in one call.
//
//	go list ──▶ kinds ──▶ walk ────────────▶ controller-tools ──▶ rules of a server ──▶ YAML
//	            Define    each reachable     schemas, markers     structure, defaults,
//	                      type; instances                         CEL
//	                      of generic ones
//
// Names, schemas and columns come from struct tags, doc comments and the markers of
// kubebuilder (https://book.kubebuilder.io/reference/markers). A generic type, used as in
// Template[Pod], has the markers of its declaration. One marker is ours: of a kind with
// several versions, the comment of one says which Service converts them,
//
//	// +flyball:conversion:namespace=website,service=website-webhooks
//
// # Promises
//
//	O3  the definition says what types, comments and markers say, generic types included;
//	    the same input gives the same bytes
//	O4  what has no definition, or one that a server refuses or that contradicts itself, is
//	    an error with the position, the field and the fix, and no file is written
//	O5  with -check the exit code is 0 if and only if the file is what would be written; the
//	    diff shows the rest
//
// # Concurrency
//
// A command has one goroutine of its own.
//
// # Testing
//
// Scripts under testdata are programs with what is written for them, or with the errors.
package crds
