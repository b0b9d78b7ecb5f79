// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// What is remembered of writes is bounded by its size, not by its number alone.
func TestOwnerships_AreBoundedByBytes(t *testing.T) {
	o := &ownerships{}
	large := strings.Repeat("f", 100<<10)
	for n := range 500 {
		o.remember(sha256.Sum256(fmt.Append(nil, n)), &ownership{entries: []owner{{fields: map[string]any{"fieldsV1": map[string]any{large: map[string]any{}}}}}})
		if held := len(o.mu.of) * len(large); held > rememberedAtMost || o.mu.bytes > rememberedAtMost {
			t.Fatalf("after %d writes %d bytes are held, counted as %d, want at most %d", n, held, o.mu.bytes, rememberedAtMost)
		}
	}
	of := shape(sha256.Sum256(nil))
	o.remember(of, &ownership{})
	before := o.mu.bytes
	for range 3 {
		o.remember(of, &ownership{})
	}
	if o.mu.bytes != before {
		t.Errorf("what takes the place of another counts %d bytes, want none", o.mu.bytes-before)
	}
	if known := (&ownership{recipe: &recipe{set: []any{large}}}).size(); known < len(large) {
		t.Errorf("what an apply is made of counts %d bytes, want %d and more", known, len(large))
	}
}

// However many prefixes names are generated from, none of them has the same draw twice,
// and few are remembered.
func TestServer_GeneratedNamesAreDrawnOnce(t *testing.T) {
	s := New(Options{})
	s.mu.Lock()
	defer s.mu.Unlock()
	last := 0
	for n := range 3 * prefixesAtMost {
		s.nameLocked(fmt.Sprintf("p%d-", n))
		s.nameLocked("same-")
		draw := s.mu.named + s.mu.names["same-"]
		if draw <= last {
			t.Fatalf("same- has draw %d after %d", draw, last)
		}
		last = draw
		if len(s.mu.names) > prefixesAtMost {
			t.Fatalf("%d prefixes are remembered, want at most %d", len(s.mu.names), prefixesAtMost)
		}
	}
}

// Documents of ever new groups are not all kept.
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

// Nothing is deleted for who has gone, and no loop goes on for ever.
func TestServer_DeletionThatIsGivenUpDeletesNothing(t *testing.T) {
	s := New(Options{})
	stored(t, s, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"}}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodDelete, "/api/v1/namespaces/default/configmaps/a", nil))
	if answer.Code != http.StatusGatewayTimeout || len(s.Objects(object.ConfigMaps)) != 1 {
		t.Errorf("got %d %s and %d ConfigMaps, want 504 and the one", answer.Code, answer.Body, len(s.Objects(object.ConfigMaps)))
	}
}
