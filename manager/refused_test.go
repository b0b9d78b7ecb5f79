// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
)

// leases is a server of one Lease that refuses one method.
type leases struct {
	refuses string
	exists  bool // and another process has held it
	allow   atomic.Bool
}

func (l *leases) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	answer := func(code int, body any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	kind := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	is := coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "website", ResourceVersion: "7", UID: "1"},
	}
	switch {
	case !strings.Contains(r.URL.Path, "/leases") || r.URL.Query().Has("watch") || r.URL.Query().Has("fieldSelector"):
		return nil, errors.New("connection refused") // the watch is not asked here
	case r.Method == l.refuses && !l.allow.Load():
		status := apierrors.NewForbidden(kind, "website", errors.New(`User "robot" has no right`)).Status()
		status.APIVersion, status.Kind = "v1", "Status"
		answer(http.StatusForbidden, status)
	case r.Method == http.MethodGet && !l.exists:
		status := apierrors.NewNotFound(kind, "website").Status()
		status.APIVersion, status.Kind = "v1", "Status"
		answer(http.StatusNotFound, status)
	case r.Method == http.MethodGet:
		answer(http.StatusOK, is)
	default:
		_ = json.NewDecoder(r.Body).Decode(&is)
		is.ResourceVersion = "8"
		answer(http.StatusOK, is)
	}
	response := w.Result()
	response.Request = r
	return response, nil
}

func TestManager_CandidateWithoutRightsSaysSo_M18(t *testing.T) {
	only := "resourceNames: [website], "
	for _, c := range []struct {
		method string
		exists bool
		rule   string
	}{
		{http.MethodGet, false, only + "verbs: [get]"},
		{http.MethodPost, false, "resources: [leases], verbs: [create]"},
		{http.MethodPut, true, only + "verbs: [update]"},
	} {
		t.Run(c.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &leases{refuses: c.method, exists: c.exists}
				var lines atomic.Int64
				m, err := manager.New(manager.Options{
					Config:         &rest.Config{Host: "http://leases", Transport: server, ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}},
					LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "ops"}, HealthAddress: "0", MetricsAddress: "0",
					Logger: funcr.New(func(_, line string) {
						if strings.Contains(line, "this process cannot lead") && strings.Contains(line, c.rule) {
							lines.Add(1)
						}
					}, funcr.Options{}),
				})
				must(t, err)
				stop, wait := run(t, m)
				time.Sleep(time.Minute)
				if n := lines.Load(); n < 1 || n > 2 {
					t.Errorf("after a minute %d lines name the rule %q, want one or two", n, c.rule)
				}
				if code, text := probe(m, "/readyz"); code != http.StatusOK {
					t.Errorf("/readyz = %d %s after a minute, want 200: a rollout may be about to grant it", code, text)
				}
				time.Sleep(2 * time.Minute)
				if code, text := probe(m, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, c.rule) {
					t.Errorf("/readyz = %d %s after three minutes, want 503 and the rule %q", code, text, c.rule)
				}
				if s := m.Snapshot().Leadership; s.Refused == nil || time.Since(s.RefusedSince) < 2*time.Minute {
					t.Errorf("the snapshot has %+v, want the refusal and since when", s)
				}
				time.Sleep(time.Hour)
				if n := lines.Load(); n > 8 {
					t.Errorf("in an hour %d lines, want a falling rate", n)
				}
				server.allow.Store(true)
				time.Sleep(time.Minute)
				if code, text := probe(m, "/readyz"); code != http.StatusOK || m.Snapshot().Leadership.Refused != nil || !m.Snapshot().Leadership.Leading {
					t.Errorf("/readyz = %d %s, the snapshot %+v, want that it leads: the right is there", code, text, m.Snapshot().Leadership)
				}
				if since := m.Snapshot().Leadership.Since; since.IsZero() || time.Since(since) > time.Minute {
					t.Errorf("it leads since %v, want within the last minute, %v", since, time.Now())
				}
				stop()
				must(t, wait())
			})
		})
	}
}
