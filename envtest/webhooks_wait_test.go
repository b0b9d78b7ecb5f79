// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// slowServer returns an API server that uses a webhook configuration only after some dry runs, and the requests it
// receives.
func slowServer(t *testing.T, after int) (e *Environment, asked *[]string) {
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		segments := strings.Split(r.URL.Path, "/")
		last := segments[len(segments)-1]
		if strings.HasPrefix(last, "0-envtest-probe-") {
			last = "probe"
		}
		*asked = append(*asked, r.Method+" "+last)
		if r.Method == http.MethodPost {
			if after--; after < 0 {
				w.WriteHeader(http.StatusForbidden)
			}
		}
	}))
	t.Cleanup(server.Close)
	return &Environment{api: endpoint{base: server.URL, http: server.Client()}}, asked
}

func TestInstallWebhooks_ReturnsWhenTheyAreCalled_E1(t *testing.T) {
	e, asked := slowServer(t, 2)
	e.opts.StartTimeout = time.Hour
	if err := e.InstallWebhooks(t.Context(), "testdata/webhooks"); err != nil {
		t.Fatal(err)
	}
	slices.Sort(*asked) // the order of the two kinds varies
	want := []string{
		"DELETE probe", "DELETE probe",
		"PATCH mutate", "PATCH probe", "PATCH probe", "PATCH validate",
		"POST runtimeclasses", "POST runtimeclasses", "POST runtimeclasses", "POST runtimeclasses",
	}
	if !slices.Equal(*asked, want) {
		t.Errorf("the server was asked %q, want %q: for each kind a probe, dry runs until one is refused, and no probe left", *asked, want)
	}
}

func TestInstallWebhooks_ThatAreNeverCalledAreAnError(t *testing.T) {
	e, asked := slowServer(t, 1<<30)
	e.opts.StartTimeout = time.Nanosecond
	err := e.InstallWebhooks(t.Context(), "testdata/webhooks")
	if err == nil || !strings.Contains(err.Error(), "is in effect: ") || !strings.Contains(err.Error(), "not called within 1ns") {
		t.Errorf("error %v, want one that says how long was waited", err)
	}
	if slices.Contains(*asked, "PATCH probe") && !slices.Contains(*asked, "DELETE probe") {
		t.Errorf("the server was asked %q: a probe is left", *asked)
	}
}
