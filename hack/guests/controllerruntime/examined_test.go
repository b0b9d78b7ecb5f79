// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate/doctor"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// program returns an operator's main function: a manager with what setup adds.
func program(scheme *runtime.Scheme, setup func(context.Context, ctrl.Manager) error) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{
			Scheme: scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: new(true)},
		})
		if err != nil {
			return err
		}
		if err := setup(ctx, mgr); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

// moduleFile returns the path of a file of a required module.
func moduleFile(t *testing.T, module string, parts ...string) string {
	t.Helper()
	dir := strings.TrimSpace(output(t, "go", "list", "-m", "-f", "{{.Dir}}", module))
	return filepath.Join(append([]string{dir}, parts...)...)
}

// examined is an operator of others, as doctor examines it.
type examined struct {
	main    func(context.Context, *rest.Config) error
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

// opaque in place of a rule: the field has no schema, so that doctor does not change what is inside.
const opaque = ""

// ruled returns a copy of a CustomResourceDefinition with rules in CEL for fields, by their dotted paths, with [] for
// the elements of a list: what the operator's webhooks would refuse.
func ruled(t *testing.T, file string, rules map[string]string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	for _, version := range versions {
		for path, rule := range rules {
			at := []string{"schema", "openAPIV3Schema"}
			for _, name := range strings.Split(path, ".") {
				if name == "[]" {
					at = append(at, "items")
				} else {
					at = append(at, "properties", name)
				}
			}
			if rule == opaque {
				inner := map[string]any{"x-kubernetes-preserve-unknown-fields": true}
				switch kind, _, _ := unstructured.NestedString(version.(map[string]any), append(at, "type")...); kind {
				case "array":
					inner = map[string]any{"type": kind, "items": inner}
				case "object":
					inner["type"] = kind
				}
				must(t, unstructured.SetNestedField(version.(map[string]any), inner, at...))
				continue
			}
			at = append(at, "x-kubernetes-validations")
			is, _, _ := unstructured.NestedSlice(version.(map[string]any), at...)
			if err := unstructured.SetNestedSlice(version.(map[string]any), append(is, map[string]any{"rule": rule}), at...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := unstructured.SetNestedSlice(crd, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.Marshal(crd); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// realServer is a real control plane without controllers: a test does what they would do.
type realServer struct {
	crclient.Client
	config *rest.Config
}

func startReal(t *testing.T, scheme *runtime.Scheme, crds ...string) *realServer {
	t.Helper()
	env, err := envtest.Start(t.Context(), envtest.Options{CRDs: crds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &realServer{config: env.Config()}
	if s.Client, err = crclient.New(s.config, crclient.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return s
}

// transport is a RoundTripper that is a function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// run runs an operator, whose requests pass through wrap, until stop is called.
func (s *realServer) run(t *testing.T, main func(context.Context, *rest.Config) error, wrap func(http.RoundTripper) http.RoundTripper) (stop func()) {
	t.Helper()
	cfg := rest.CopyConfig(s.config)
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- main(ctx, cfg) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after two minutes: %s", what)
		}
	}
}

// must fails the test for an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read reads the objects of a file of the test data.
func read[T any](t *testing.T, name string) *T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "examined", name))
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := yaml.UnmarshalStrict(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// earlier is what the server has listed at a path at some time.
type earlier struct {
	path, kind string
	body       []byte
}

// recorded lists the objects of a built-in kind at a path.
func (s *realServer) recorded(t *testing.T, path string) earlier {
	t.Helper()
	next, err := rest.TransportFor(s.config)
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.config.Host+path, http.NoBody)
	must(t, err)
	r.Header.Set("Accept", runtime.ContentTypeProtobuf)
	answer, err := next.RoundTrip(r)
	must(t, err)
	body, err := io.ReadAll(answer.Body)
	must(t, errors.Join(err, answer.Body.Close()))
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
