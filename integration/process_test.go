// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// process is a manager with what its specs observe: an operator's process, within the
// process of the tests.
type process struct {
	*manager.Manager
	before []gleak.Goroutine
	cancel context.CancelFunc
	done   chan error
	mu     struct {
		sync.Mutex
		lines []string // of the log
	}
}

// newProcess creates a manager that watches namespace, and starts nothing.
func newProcess(cfg *rest.Config, namespace string) *process {
	GinkgoHelper()
	p := &process{before: gleak.Goroutines()}
	var err error
	p.Manager, err = manager.New(manager.Options{
		Config: cfg, Scheme: scheme, Logger: p.logger(), HealthAddress: "127.0.0.1:0", MetricsAddress: "0",
		Informers: informer.Options{
			Namespaces:      []string{namespace},
			DetectMutations: informertest.NoMutations(func(m ...any) { Fail(fmt.Sprint(m...)) }),
		},
	})
	Expect(err).NotTo(HaveOccurred())
	return p
}

func (p *process) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.mu.lines = append(p.mu.lines, args)
	}, funcr.Options{})
}

// log returns the lines that contain all of parts.
func (p *process) log(parts ...string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
line:
	for _, line := range p.mu.lines {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue line
			}
		}
		out = append(out, line)
	}
	return out
}

// complaints returns the lines with an error.
func (p *process) complaints() []string { return p.log(`"error"=`) }

// complaintsBesides returns complaints without those that have a text.
func (p *process) complaintsBesides(text string) []string {
	return slices.DeleteFunc(p.complaints(), func(line string) bool { return strings.Contains(line, text) })
}

func (p *process) start() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan error, 1)
	DeferCleanup(cancel) // a failed spec leaves nothing running
	go func() { p.done <- p.Run(ctx) }()
}

// stop ends the process like a SIGTERM, and expects that Run returns nil in time and leaves
// nothing behind.
func (p *process) stop() {
	GinkgoHelper()
	p.ends()
	p.nothingIsLeft()
}

func (p *process) ends() {
	GinkgoHelper()
	p.cancel()
	Eventually(p.done).WithTimeout(20*time.Second).Should(Receive(BeNil()), "Run returns after its context has ended")
}

func (p *process) nothingIsLeft() {
	GinkgoHelper()
	// The writers from outside share the transport of their configuration with the process.
	// A connection counts as idle only a moment after its last stream was cancelled, so
	// each poll closes idle connections again.
	goroutines := func() []gleak.Goroutine {
		utilnet.CloseIdleConnectionsFor(connection.Transport)
		return gleak.Goroutines()
	}
	Eventually(goroutines).WithTimeout(20 * time.Second).
		ShouldNot(gleak.HaveLeaked(p.before, gleak.IgnoringInBacktrace("envtest.startProcess")))
}

// ready returns the answer of the readiness probe.
func (p *process) ready() string {
	req, err := http.NewRequest(http.MethodGet, "http://"+p.HealthAddr()+"/readyz?verbose", nil)
	if err != nil {
		return err.Error()
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text := httptest.NewRecorder()
	if _, err := text.Body.ReadFrom(resp.Body); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, text.Body)
}

// watcher is a controller that records the version in which it found each object.
type watcher[T kube.Object] struct {
	*reconcile.Controller[reconcile.Key]
	informer *informer.SharedInformer[T]
	mu       struct {
		sync.Mutex
		seen  map[reconcile.Key]string // version at the start of the last reconcile; gone
		runs  map[reconcile.Key]int
		wrong []string
	}
}

const gone = "gone"

// watch adds a controller of T to p. It calls then, which may be nil, with each existing
// object.
func watch[T kube.Object](p *process, name string, opts reconcile.Options, then func(ctx context.Context, obj T) error) *watcher[T] {
	GinkgoHelper()
	w := &watcher[T]{informer: informer.For[T](p.Informers())}
	w.mu.seen, w.mu.runs = map[reconcile.Key]string{}, map[reconcile.Key]int{}
	lister := w.informer.Lister()
	w.Controller = reconcile.New(name, func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		obj, err := lister.Get(key)
		switch {
		case apierrors.IsNotFound(err):
			w.note(key, gone)
			return reconcile.Result{}, nil
		case err != nil:
			return reconcile.Result{}, err
		}
		w.note(key, obj.GetResourceVersion())
		if then == nil {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, then(ctx, obj)
	}, opts)
	w.Watch(source.Kind(w.informer, source.Self))
	Expect(p.Add(w.Controller)).To(Succeed())
	return w
}

// note also verifies I1: no reconcile sees an older version than one before.
func (w *watcher[T]) note(key reconcile.Key, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.mu.seen[key]
	if kube.ParseVersion(version) < kube.ParseVersion(before) && version != gone {
		w.mu.wrong = append(w.mu.wrong, fmt.Sprintf("%s: %s after %s", key, version, before))
	}
	w.mu.seen[key] = version
	w.mu.runs[key]++
}

// saw returns the version of the object that the last reconcile of key found.
func (w *watcher[T]) saw(key reconcile.Key) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.seen[key]
}

func (w *watcher[T]) ran(key reconcile.Key) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.runs[key]
}

// state returns the state of the kind's one list and watch.
func (w *watcher[T]) state() state.State { return w.informer.Snapshot().Scopes[0].State }

// last returns the last version that the reconciles have seen of each existing object.
func (w *watcher[T]) last() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]string{}
	for key, version := range w.mu.seen {
		if version != gone {
			out[key.Name] = version
		}
	}
	return out
}

func (w *watcher[T]) wrong() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.wrong
}
