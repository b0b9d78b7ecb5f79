// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostile attacks an operator: a process of its own, on a real control plane
// behind a proxy that lies. It sends the corpus of internal/hostile to the operator's
// webhooks, and the proxy answers with compressed bombs, floods of 429 and watches with
// garbage. Meanwhile the operator must follow its objects and answer honest reviews;
// after it, its memory must have stayed within bounds.
//
//	go test ./hack/hostile                         a few seconds
//	make hostile                                   two minutes
//
// A flood of one's own at the webhooks is one more entry of the test's table, and a lie of
// the API server one more case of the proxy.
package hostile
