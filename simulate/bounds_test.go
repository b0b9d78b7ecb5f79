// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

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
