// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package pack is flyball pack, which makes an operator's image, Helm chart and OLM bundle from what its author edits: the
// module and a kustomize base.
//
//	go run github.com/flyball-dev/flyball/cmd/flyball@latest pack image -image registry.example.com/operator:v1 -push
//	go run github.com/flyball-dev/flyball/cmd/flyball@latest pack chart -o dist/chart -version 1.2.3 config
//	go run github.com/flyball-dev/flyball/cmd/flyball@latest pack bundle -o dist/bundle -version 1.2.3 config
//
// A module that flyball new has written has make image, chart and bundle, with the one of the
// Flyball in its go.mod, a version or a clone.
//
//	a commit ──▶ go build ──▶ layer, SBOM ──▶ image ──▶ registry, OCI layout
//	a base ──▶ kustomize ──▶ objects ──┬──▶ chart: templates, values, schema ──▶ helm
//	                                   └──▶ bundle: ClusterServiceVersion ────▶ OLM
//
// flyball pack image needs neither Docker nor a base image: the image has the program alone, without
// certificates of authorities, because the API server's are mounted. Programs that call
// servers outside the cluster give -ca-certificates. Its time is the commit's, its source
// follows from the module's path, and a toolchain line in go.mod is the Go that builds it.
// flyball pack sbom writes the SBOM of any Go program.
//
// # Promises
//
//	L1  the same commit, flags and Go give the same digest, in any directory, at any time,
//	    with any umask, environment, tags and remotes
//	L2  the image has the static program alone, owned by root and run by user 65532, and for
//	    each platform an SBOM with its modules
//	L3  a file of the image that is not the commit's is an error, or with -dirty in the
//	    revision
//	L4  with its own values and in the base's namespace the chart renders to the base; what
//	    pack does not know is text; wrong values are refused by name
//	L5  the bundle grants each ServiceAccount the rules of the base and no others; what OLM
//	    cannot install is an error, what does not move a warning
//	L6  a directory with files that pack has not written, or that were changed, stays as it
//	    is
//
// # Concurrency
//
// A command runs in one goroutine.
//
// # Testing
//
// Tests build images of small repositories, push them to a registry in the process, and
// render charts without Helm. hack/guests/packaging installs all with kubectl, Helm and an
// installer of bundles, and runs the operator with its rights alone.
package pack
