// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"testing"
)

// The cache of documents stays bounded as new groups keep coming.
func TestServer_KeepsFewDocuments(t *testing.T) {
	var l library
	for n := range 10 * renderedAtMost {
		path := fmt.Sprint("/apis/group-", n)
		l.keep(path, &rendered{})
		if l.at(path) == nil || len(l.mu.docs) > renderedAtMost {
			t.Fatalf("%d documents are kept after %d, want at most %d and the last", len(l.mu.docs), n+1, renderedAtMost)
		}
	}
}
