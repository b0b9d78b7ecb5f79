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
