// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Nothing is deleted for who has gone, and no loop goes on forever.
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
