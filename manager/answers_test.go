// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/bodylimit"
	"github.com/flyball-dev/flyball/manager"
)

// Third-party clients made from the manager's configuration have the limit too.
func TestManager_EachClientOfItsConfigHasTheLimit_C12(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"`+strings.Repeat("x", 1<<20)+`"}}`)
		_ = z.Close()
	}))
	defer server.Close()
	mgr := newManager(t, manager.Options{Config: &rest.Config{Host: server.URL}})
	api, err := kubernetes.NewForConfig(mgr.Config())
	if err != nil {
		t.Fatal(err)
	}
	maps := api.CoreV1().ConfigMaps("prod")
	if _, err = maps.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("within the limit: %v", err)
	}
	var large *client.TooLargeError
	if _, err = maps.Get(bodylimit.WithLimit(t.Context(), 1<<20), "a", metav1.GetOptions{}); !errors.As(err, &large) {
		t.Errorf("beyond the limit: %v, want a TooLargeError", err)
	}
}
