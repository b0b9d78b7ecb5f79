// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
func managed(scheme *runtime.Scheme, setup func(ctrl.Manager) error, change ...func(*ctrl.Options)) program {
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
		if err := setup(mgr); err != nil {
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

// file writes a text into a file of its own.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// withoutFields returns definitions like those of a directory, but with schemas that allow everything: doctor finds no
// fields in them that it could change.
func withoutFields(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			t.Fatal(err)
		}
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema = &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
			}
		}
		if text, err = yaml.Marshal(crd); err != nil {
			t.Fatal(err)
		}
		all.WriteString("---\n" + string(text))
	}
	return file(t, all.String())
}

// world is a real API server with a user.
type world struct {
	t   *testing.T
	cfg *rest.Config
	client.Client
}

func realWorld(t *testing.T, scheme *runtime.Scheme, crds ...string) *world {
	t.Helper()
	if os.Getenv(envtest.AssetsVariable) == "" {
		t.Skip("it needs a real API server: set " + envtest.AssetsVariable)
	}
	env, err := envtest.Start(t.Context(), envtest.Options{CRDs: crds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(env.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, env.Config(), c}
}

// await waits until a condition holds.
func (w *world) await(what string, so func() bool) {
	w.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not after two minutes: %s", what)
		}
	}
}

// process is one run of a program on a real API server.
type process struct {
	next  http.RoundTripper
	after func(r *http.Request) error // nil: nothing happens after a write
	dead  atomic.Bool
	stop  func()
	ended chan struct{}
}

var errDead = errors.New("this process is dead")

// RoundTrip sends a request. Of a dead process none arrives, and it sees no answer.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.dead.Load() {
		return nil, errDead
	}
	answer, err := p.next.RoundTrip(r)
	if err != nil || answer.StatusCode >= 300 || r.Method == http.MethodGet || p.after == nil {
		return answer, err
	}
	if lost := p.after(r); lost != nil {
		_ = answer.Body.Close()
		return nil, lost
	}
	return answer, nil
}

// kill ends the process without a further request.
func (p *process) kill() error {
	p.dead.Store(true)
	p.stop()
	return errDead
}

// start starts a program. after is called after each write that succeeds. If it returns an error, the program gets
// that in place of the answer.
func (w *world) start(run program, after func(p *process, r *http.Request) error) *process {
	w.t.Helper()
	p := &process{ended: make(chan struct{})}
	if after != nil {
		p.after = func(r *http.Request) error { return after(p, r) }
	}
	cfg := rest.CopyConfig(w.cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		p.next = next
		return p
	})
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
