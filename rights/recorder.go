// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"flag"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// The flag makes Check write the manifests.
var update = flag.Bool("rights.update", false, "write the rules that the tests used into the manifests of rights.Recorder.Check")

// Recorder records the rights that requests need. The zero value is ready to
// use.
type Recorder struct {
	mu struct {
		sync.Mutex
		used map[Right]bool
	}
}

// Config returns a copy of cfg whose clients are recorded.
func (r *Recorder) Config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(r.Transport)
	return cfg
}

// Transport returns a transport that sends requests with next and records them, except those
// answered with 401.
func (r *Recorder) Transport(next http.RoundTripper) http.RoundTripper { return transport{r, next} }

type transport struct {
	recorder *Recorder
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(req)
	code := 0 // a request without an answer may have reached the server
	if err == nil {
		code = answer.StatusCode
	}
	t.recorder.record(req, code)
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (r *Recorder) record(req *http.Request, code int) {
	right, ok := needed(req)
	if !ok || code == http.StatusUnauthorized {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.used == nil {
		r.mu.used = map[Right]bool{}
	}
	r.mu.used[right] = true
	if right.Verb == "patch" && code == http.StatusCreated {
		right.Verb = "create"
		r.mu.used[right] = true
	}
}

// Used returns what was recorded so far, sorted.
func (r *Recorder) Used() []Right {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Keys(r.mu.used), compare)
}

// Check compares the rights used so far with those that the Roles and
// ClusterRoles in file grant, and reports each that is missing or unused as an
// error of t. With the flag -rights.update it writes the rules of these roles.
// Further documents of the file stay as they are.
func (r *Recorder) Check(t testing.TB, file string) {
	t.Helper()
	if err := r.check(file, *update); err != nil {
		t.Error(err)
	}
}
