// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package envtest runs a real etcd and kube-apiserver for tests and experiments.
//
//	           Start                                 KillAPIServer, StartAPIServer, Compact                Stop
//	             │                                                     │                                    │
//	Binaries ──▶ etcd ──▶ kube-apiserver ──▶ CRDs, webhooks ──▶ Config, Kubeconfig, User, TokenUser ──▶ nothing left
//	   ▲                                                               ▲
//	   │ built once from the embedded recipe                           │ your code, kubectl
//	user's cache                                                  guard: ends it all if the tests die without Stop
//
// A minimal test:
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
// An API server of Kubernetes 1.37 with RBAC, on 127.0.0.1, with its own certificates, and an etcd that only the API server
// and the environment can access. There is no scheduler and no controller: a Deployment gets no Pods, a namespace under
// deletion stays, nothing is garbage-collected, and no service accounts are created (TokenUser creates them).
//
// # Webhooks
//
// Options.Webhooks and InstallWebhooks take the manifests of a cluster. Webhooks that refer to a Service, including
// conversion webhooks of CRDs, are called on 127.0.0.1 instead: Webhooks returns where to listen and which certificate to
// serve.
//
// # Binaries
//
// The binaries come from the directory in Options.Assets or the environment variable KUBEBUILDER_ASSETS. If neither is set,
// they are built once into the user's cache, from Go modules whose versions and checksums are embedded in this package;
// that needs the go command and a few minutes. `go run github.com/flyball-dev/flyball/hack/controlplane` builds them before
// the first test and prints the directory.
//
// # Promises
//
//   - E1 When Start returns, the environment is ready: it answers requests, serves every CRD and lists it in discovery, and
//     calls every webhook.
//   - E2 After a kill the API server comes back on the same port with the same data, certificates and CRDs.
//   - E3 After Stop, or after an error of Start, no process and no file of the environment is left.
//   - E4 The same holds, within seconds, when the test process is killed.
//   - E5 However many processes need missing binaries, one builds them, and none sees them partially.
//
// # Concurrency
//
// An Environment is safe for concurrent use. Many can run at the same time, in one process or several.
//
// # Testing
//
// The tests of this package run real servers. If the binaries are not in the cache, the first run builds them.
package envtest
