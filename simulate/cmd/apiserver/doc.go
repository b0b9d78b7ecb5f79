// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command apiserver runs the simulated Kubernetes API server as a program, and installs it
// in place of a real one for suites that use envtest.
//
//	apiserver                    a server for kubectl and programs in any language
//	apiserver install DIR        DIR/etcd and DIR/kube-apiserver, for KUBEBUILDER_ASSETS
//
// One program has three roles, by the name that it is called by:
//
//	apiserver        serve.go           certificates and a kubeconfig of its own, actors, faults
//	kube-apiserver   kubeapiserver.go   the flags of a real one, as far as envtest sets them
//	etcd             etcd.go            answers health checks, says where kube-apiserver keeps objects
//
// README.md describes the flags.
package main
