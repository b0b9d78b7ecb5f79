// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime runs controller-runtime's own test suites, unchanged and from
// the module proxy, against the simulated API server and against a real one, together with
// the suites of two operators. It also builds some of them, and the suites of five larger
// operators, with flyball's cache, client and queue under controller-runtime's, and measures
// how the programs of some start. It is a separate module.
//
// The suites start an API server through envtest, from the binaries in KUBEBUILDER_ASSETS.
// For the simulated server, simulate/cmd/apiserver installs itself there. testdata/guestbook
// is the suite of a small operator of our own that knows only controller-runtime.
package controllerruntime
