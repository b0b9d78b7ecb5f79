// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostile attacks an operator: a process of its own, on a real control plane behind
// a malicious proxy. It sends the corpus of internal/testing/hostile to the operator's webhooks,
// and the proxy answers with compressed bombs, floods of 429 and watches with garbage.
// Meanwhile the operator must process its objects and answer honest reviews; afterwards,
// its peak memory must be within bounds.
//
//	go test ./hack/hostile                         a few seconds
//	make hostile                                   two minutes
//
// Another flood of the webhooks is one more entry of the test's table, and another
// malicious answer of the API server one more case of the proxy.
package hostile
