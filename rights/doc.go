// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package rights keeps an operator's RBAC manifests equal to the requests that
// its tests see.
//
//	func TestRights(t *testing.T) {
//		used := &rights.Recorder{}
//		kit.Test(t, kit.Config{Rights: used, …}, scenario)
//		used.Check(t, "config/rbac.yaml")
//	}
//
// The test fails if the manifests lack a right that a request needed, or grant
// one that no request used. With the flag -rights.update, Check writes the
// rules instead:
//
//	go test -run TestRights -rights.update .
//
//	requests ──Recorder──▶ rights used ──┐
//	                                     ├─▶ missing, unused; or the new rules
//	manifests ──▶ rights granted ────────┘
//
// With a real API server, pass the configuration through Recorder.Config.
//
// # Promises
//
//	P1 a right that a recorded request needs is granted by the manifests, or Check
//	   fails
//	P2 a granted right that no recorded request used fails Check
//	P3 an update changes only rules, and a Check after it succeeds
//
// # Rules
//
// A request for all namespaces, and requests in several namespaces, need a
// ClusterRole. A Role of the manifests has the rights that were used only in its
// own namespace. An update limits Leases in a Role to the names that were used,
// except for create.
//
// A server-side apply or another patch that creates its object needs patch and
// create. Requests for non-resource URLs, such as discovery, need no rule: every
// user has those rights. A rule with the comment "# keep" stays as it is and is
// never unused: use it for rights that no request shows, such as update of
// finalizers, which some clusters demand for owner references.
//
// # Concurrency
//
// A Recorder is safe for concurrent use.
package rights
