// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/doctor"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// moduleFile returns the path of a file of a required module.
func moduleFile(t *testing.T, module string, parts ...string) string {
	t.Helper()
	dir := strings.TrimSpace(output(t, "go", "list", "-m", "-f", "{{.Dir}}", module))
	return filepath.Join(append([]string{dir}, parts...)...)
}

// examined is an operator of others, as doctor examines it.
type examined struct {
	main    program
	crds    []string
	samples []string
	cluster kit.Config
	most    int
	// known are the texts that findings have, with what each of them is. Another one fails the test, as does a
	// missing one unless it is by chance.
	known []finding
}

// finding is a known finding of doctor in an operator.
type finding struct {
	class    doctor.Class
	text     string // part of its text
	is       string // what it is: a bug, or why it is none
	byChance bool   // the plans that were run need not show it
}

// examine examines an operator, and compares what is found with what is known.
func (e examined) examine(t *testing.T) {
	t.Helper()
	r := doctor.Examine(t, doctor.Operator{
		Main: e.main, CRDs: e.crds, Samples: e.samples, Cluster: e.cluster, MostPlans: e.most, Budget: 20 * time.Minute,
	})
	found := map[int]bool{}
	for _, f := range r.Findings {
		i := slices.IndexFunc(e.known, func(k finding) bool { return k.class == f.Class && strings.Contains(f.Text, k.text) })
		if i < 0 {
			t.Errorf("not known: %s [%s] %s\n%s\nby %v, %s, shown by %d plans, %d of %d repetitions\nalso %q\n%s", f.Class, f.ID, f.Text, f.Plan,
				f.Patterns, f.Line, f.Plans, f.Repeated, f.Tries, f.Also, strings.Join(f.Story, "\n"))
			continue
		}
		found[i] = true
		t.Logf("known: %s [%s] %s\n%s\n%s", f.Class, f.ID, f.Text, f.Plan, e.known[i].is)
	}
	for i, k := range e.known {
		if !found[i] && !k.byChance {
			t.Errorf("not found: %s: %s", k.class, k.text)
		}
	}
	t.Logf("%d findings, %d of %d plans in %s (prepared in %s), %v, %d missed, %d refused; not judged: %q",
		len(r.Findings), r.Ran, r.Plans, r.Took, r.Prepared, r.Patterns, r.Missed, len(r.Refused), r.Skipped)
}

// read reads the objects of a file of the test data.
func read[T any](t *testing.T, name string) *T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "examined", name))
	must(t, err)
	out := new(T)
	must(t, yaml.UnmarshalStrict(text, out))
	return out
}

// earlier is what the server has listed at a path at some time.
type earlier struct {
	path, kind string
	body       []byte
}

// recorded lists the objects of a built-in kind at a path.
func (w *world) recorded(path string) earlier {
	w.t.Helper()
	next, err := rest.TransportFor(w.cfg)
	must(w.t, err)
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.cfg.Host+path, http.NoBody)
	must(w.t, err)
	r.Header.Set("Accept", runtime.ContentTypeProtobuf)
	answer, err := next.RoundTrip(r)
	must(w.t, err)
	body, err := io.ReadAll(answer.Body)
	must(w.t, errors.Join(err, answer.Body.Close()))
	return earlier{path, answer.Header.Get("Content-Type"), body}
}

// lag lets the operator see the objects as they were, as on a server that lags behind: one without streaming lists
// (KEP-3157), and whose watches have not sent anything yet.
func (e earlier) lag(next http.RoundTripper) http.RoundTripper {
	answered := func(r *http.Request, code int, kind string, body []byte) *http.Response {
		return &http.Response{
			Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}
	}
	return transport(func(r *http.Request) (*http.Response, error) {
		switch q := r.URL.Query(); {
		case r.Method != http.MethodGet || r.URL.Path != e.path:
			return next.RoundTrip(r)
		case q.Has("sendInitialEvents"):
			text := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"sendInitialEvents is forbidden"}`
			return answered(r, http.StatusUnprocessableEntity, runtime.ContentTypeJSON, []byte(text)), nil
		case q.Get("watch") == "true" || q.Get("watch") == "1":
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return answered(r, http.StatusOK, e.kind, e.body), nil
	})
}
