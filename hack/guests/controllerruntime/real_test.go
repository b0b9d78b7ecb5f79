// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// This file is also copied into modules of operators that doctor examines.
package controllerruntime_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/envtest"
)

// program is an operator, as doctor.Operator.Main.
type program func(ctx context.Context, cfg *rest.Config) error

// managed returns a program of controllers that setup adds to a manager. change changes the manager's options.
func managed(scheme *runtime.Scheme, setup func(context.Context, ctrl.Manager) error, change ...func(*ctrl.Options)) program {
	ctrl.SetLogger(logr.Discard())
	return func(ctx context.Context, cfg *rest.Config) error {
		options := ctrl.Options{
			Scheme: scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
			Controller: config.Controller{SkipNameValidation: new(true)},
		}
		for _, f := range change {
			f(&options)
		}
		mgr, err := ctrl.NewManager(cfg, options)
		if err != nil {
			return err
		}
		if err := setup(ctx, mgr); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

// schemeOf returns a scheme with Kubernetes' own kinds and those that add adds.
func schemeOf(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, f := range append(add, clientscheme.AddToScheme) {
		if err := f(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// must fails the test for an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// file writes a text into a file of its own.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "objects.yaml")
	must(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

const (
	// opaque in place of a rule: the field has no schema, so that doctor does not change what is inside.
	opaque = ""
	// whole is the path of everything.
	whole = ""
)

// ruled returns a copy of the CustomResourceDefinitions of a file or directory with rules in CEL for fields, by their
// dotted paths, with [] for the elements of a list: what the operator's webhooks would refuse.
func ruled(t *testing.T, at string, rules map[string]string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(at, "*.yaml"))
	must(t, err)
	if len(names) == 0 {
		names = []string{at}
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		must(t, err)
		crd := map[string]any{}
		must(t, yaml.Unmarshal(text, &crd))
		versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
		for _, version := range versions {
			for path, rule := range rules {
				must(t, addRule(version.(map[string]any), path, rule))
			}
		}
		must(t, unstructured.SetNestedSlice(crd, versions, "spec", "versions"))
		text, err = yaml.Marshal(crd)
		must(t, err)
		all.WriteString("---\n" + string(text))
	}
	return file(t, all.String())
}

// addRule adds a rule to a version of a CustomResourceDefinition.
func addRule(version map[string]any, path, rule string) error {
	at := []string{"schema", "openAPIV3Schema"}
	for name := range strings.SplitSeq(path, ".") {
		switch name {
		case whole:
		case "[]":
			at = append(at, "items")
		default:
			at = append(at, "properties", name)
		}
	}
	if rule == opaque {
		inner := map[string]any{"x-kubernetes-preserve-unknown-fields": true}
		switch kind, _, _ := unstructured.NestedString(version, append(at, "type")...); kind {
		case "array":
			inner = map[string]any{"type": kind, "items": inner}
		case "object":
			inner["type"] = kind
		}
		return unstructured.SetNestedField(version, inner, at...)
	}
	at = append(at, "x-kubernetes-validations")
	is, _, _ := unstructured.NestedSlice(version, at...)
	return unstructured.SetNestedSlice(version, append(is, map[string]any{"rule": rule}), at...)
}

// world is a real control plane without controllers, with a user: a test does what the controllers would do.
type world struct {
	t   *testing.T
	cfg *rest.Config
	client.Client
}

func realWorld(t *testing.T, scheme *runtime.Scheme, crds ...string) *world {
	t.Helper()
	env, err := envtest.Start(t.Context(), envtest.Options{CRDs: crds})
	must(t, err)
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(env.Config(), client.Options{Scheme: scheme})
	must(t, err)
	return &world{t, env.Config(), c}
}

// get reads an object of the namespace default. It reports whether there is one.
func (w *world) get(name string, into client.Object) bool {
	w.t.Helper()
	err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, into)
	must(w.t, client.IgnoreNotFound(err))
	return err == nil
}

// await waits until a condition holds.
func (w *world) await(what string, so func() bool) {
	w.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not after two minutes: %s", what)
		}
	}
}

// transport is a RoundTripper that is a function.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip sends a request.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// process is one run of a program on a real API server.
type process struct {
	dead  atomic.Bool
	stop  func()
	ended chan struct{}
}

var errDead = errors.New("this process is dead")

// kill ends the process without a further request: of a dead process none arrives, and it sees no answer.
func (p *process) kill() error {
	p.dead.Store(true)
	p.stop()
	return errDead
}

// start starts a program. after, unless it is nil, is called after each write that succeeds; if it returns an error, the
// program gets that in place of the answer. The requests also pass through wraps.
func (w *world) start(run program, after func(p *process, r *http.Request) error, wraps ...func(http.RoundTripper) http.RoundTripper) *process {
	w.t.Helper()
	p := &process{ended: make(chan struct{})}
	cfg := rest.CopyConfig(w.cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if p.dead.Load() {
				return nil, errDead
			}
			answer, err := next.RoundTrip(r)
			if err != nil || answer.StatusCode >= 300 || r.Method == http.MethodGet || after == nil {
				return answer, err
			}
			if lost := after(p, r); lost != nil {
				return nil, errors.Join(lost, answer.Body.Close())
			}
			return answer, nil
		})
	})
	for _, wrap := range wraps {
		cfg.Wrap(wrap)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = sync.OnceFunc(cancel)
	go func() {
		defer close(p.ended)
		if err := run(ctx, cfg); err != nil && !p.dead.Load() {
			w.t.Error(err)
		}
	}()
	w.t.Cleanup(p.end)
	return p
}

// end asks the process to stop, and waits until it has.
func (p *process) end() {
	p.stop()
	<-p.ended
}
