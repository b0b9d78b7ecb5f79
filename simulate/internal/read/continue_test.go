// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// No token leads outside of its list, and a token of the server leads to where its page
// ended.
func FuzzContinueToken_S4(f *testing.F) {
	for _, first := range []string{"/a", "a/b\x00", "../x", "/a/../../b", "", "/", "//", "a//b"} {
		f.Add(continueToken{tokenVersion, 7, first}.encode(), "ns", "name")
		f.Add(first, "n-1", "a.b")
	}
	f.Fuzz(func(t *testing.T, token, namespace, name string) {
		if revision, first, err := parseContinue(token); err == nil {
			if revision == 0 || strings.HasPrefix(first, "/") || strings.Contains("/"+first+"/", "/../") {
				t.Errorf("%q leads to %q at %d", token, first, revision)
			}
		}
		if name == "" || strings.Contains(namespace+name, "/") || strings.Trim(namespace, ".") == "" && namespace != "" || strings.ToValidUTF8(namespace+name, "") != namespace+name {
			return // not a key
		}
		key := types.NamespacedName{Namespace: namespace, Name: name}
		for _, in := range []string{"", namespace} {
			revision, first, err := parseContinue(ContinueAfter(in, key, 9))
			if err != nil || revision != 9 {
				t.Fatalf("the token after %q leads to %d: %v", key, revision, err)
			}
			if from := revisions.SpanOf(in, first).From; revisions.CompareKeys(key, from) >= 0 || revisions.CompareKeys(types.NamespacedName{Namespace: namespace, Name: name + "\x00"}, from) != 0 {
				t.Errorf("the token after %q leads to %q", key, from)
			}
		}
	})
}
