// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// listed reads one page: its keys, and the token of the next or of a refusal.
func listed(t *testing.T, s *Server, query string) (keys, token string, code int) {
	t.Helper()
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/api/v1/configmaps?"+query, nil))
	var list struct {
		Metadata metav1.ListMeta
		Items    []struct{ Metadata metav1.ObjectMeta }
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
		t.Fatalf("%s: %v", answer.Body, err)
	}
	for _, item := range list.Items {
		keys += " " + item.Metadata.Namespace + "/" + item.Metadata.Name
	}
	return keys, list.Metadata.Continue, answer.Code
}

// A store orders by paths, where "-" comes before the slash after a namespace.
func TestServer_PagesGoOnWhereTheLastOneEnded_S2(t *testing.T) {
	s := New(Options{Namespaces: []string{"a", "a-b", "a.b", "a0"}})
	for _, namespace := range []string{"a", "a-b", "a.b", "a0"} {
		stored(t, s, strings.Replace(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"?","name":"x"}}`, "?", namespace, 1))
	}
	for _, limit := range []string{"limit=1", "limit=2", "limit=3", "limit=1&labelSelector=!z"} {
		all, token, _ := listed(t, s, limit)
		for token != "" {
			var keys string
			keys, token, _ = listed(t, s, limit+"&continue="+token)
			all += keys
		}
		if want := " a-b/x a.b/x a/x a0/x"; all != want {
			t.Errorf("%s: pages have%s, want%s", limit, all, want)
		}
	}
}

// A token that is too old comes with one for the rest as it is now.
func TestServer_ExpiredPagesCanGoOnInconsistently_S4(t *testing.T) {
	s := New(Options{Namespaces: []string{"n"}})
	add := func(name string) {
		stored(t, s, strings.Replace(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"?"}}`, "?", name, 1))
	}
	add("a")
	add("b")
	_, token, _ := listed(t, s, "limit=1")
	add("c")
	s.Compact()
	_, newer, code := listed(t, s, "limit=1&continue="+token)
	if code != http.StatusGone || newer == "" {
		t.Fatalf("got %d with token %q, want 410 with one", code, newer)
	}
	if keys, _, _ := listed(t, s, "continue="+newer); keys != " n/b n/c" {
		t.Errorf("the rest is%s, want n/b n/c", keys)
	}
}

// Whatever a token says, it leads nowhere but into the list, and what the
// server has given leads to where it ended.
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
			revision, first, err := parseContinue(continueAfter(in, key, 9))
			if err != nil || revision != 9 {
				t.Fatalf("the token after %q leads to %d: %v", key, revision, err)
			}
			if from := revisions.SpanOf(in, first).From; revisions.CompareKeys(key, from) >= 0 || revisions.CompareKeys(types.NamespacedName{Namespace: namespace, Name: name + "\x00"}, from) != 0 {
				t.Errorf("the token after %q leads to %q", key, from)
			}
		}
	})
}
