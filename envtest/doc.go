// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package envtest runs a real etcd and kube-apiserver for tests and for trying things out.
//
//	           Start                                 KillAPIServer, StartAPIServer, Compact                Stop
//	             │                                                     │                                    │
//	Binaries ──▶ etcd ──▶ kube-apiserver ──▶ CRDs, webhooks ──▶ Config, Kubeconfig, User, TokenUser ──▶ nothing left
//	   ▲                                                               ▲
//	   │ built once from the embedded recipe                           │ your code, kubectl
//	user's cache                                                  guard: ends it all if the tests die without Stop
//
// A test needs this much:
//
//	env, err := envtest.Start(ctx, envtest.Options{CRDs: []string{"config/crd"}})
//	if err != nil {
//		return err
//	}
//	defer env.Stop()
//	client, err := kubernetes.NewForConfig(env.Config())
//
// # What runs
//
// An API server of Kubernetes 1.37 with RBAC, on 127.0.0.1, with certificates of its own, over an etcd that only it and
// the environment can log in to. Nothing else: no scheduler, no controllers, so a Deployment gets no Pods, a namespace
// under deletion stays, nobody collects garbage, and nobody makes service accounts (TokenUser does).
//
// # Webhooks
//
// Options.Webhooks and InstallWebhooks take the manifests of a cluster. Webhooks that are reached by a Service, those for
// the conversion of a CRD too, are called on 127.0.0.1 instead: Webhooks says where to listen and which certificate to
// serve.
//
// # Binaries
//
// They come from the directory that Options.Assets or the environment variable KUBEBUILDER_ASSETS names. Where neither is
// set they are built, once, from Go modules whose versions and sums are embedded here, into the user's cache; it takes the
// go command and some minutes. `go run github.com/flyball-dev/flyball/hack/controlplane` does it ahead of the first test
// and prints the directory.
//
// # Promises
//
//   - E1 What Start returns is ready: requests are answered, every CRD given serves and is listed by discovery, and every
//     webhook given is called.
//   - E2 The API server comes back from a kill on the same port with the same data, certificates and CRDs.
//   - E3 After Stop, or after a Start that returns an error, no process and no file of the environment is left.
//   - E4 So it is, within seconds, when the process of the tests is killed.
//   - E5 However many processes ask for missing binaries, one builds them, and nobody sees them in part.
//
// # Concurrency
//
// An Environment is safe for concurrent use. Many can run at the same time, in one process or several.
//
// # Testing
//
// The tests of this package run real servers. Where the binaries are not in the cache the first run builds them.
package envtest
