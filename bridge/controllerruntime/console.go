// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/stacks"
	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager/console"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// ConsoleOptions are what a console can do. AddConsole has the zero value.
type ConsoleOptions struct {
	// Remote answers requests from other machines too. Set it only together with FilterProvider of
	// the options of the metrics server, which authorizes them: pages show cached objects. Without
	// it only this machine is answered, as by kubectl port-forward.
	Remote bool
}

// AddConsole serves the console of mgr, whose cache must be of NewCache, at console.Path of its
// metrics server, and the JSON below it. docs/console.md describes it. Call it before mgr starts, and
// once in a process.
//
// The queues of controllers with NewQueue or NewFairQueue, made from then on, record the runs of their
// keys: why each ran, how long it waited and took, its outcome, and the requests that the clients of
// NewClient have sent on the goroutine of its worker. Recorded adds errors, and the requests of other
// goroutines. Controllers with other queues are not shown.
//
// AddConsole does not block. It returns an error if the cache is another one, if mgr has started, or if
// another manager of the process with a console is running.
func AddConsole(mgr ctrl.Manager) error { return ConsoleOptions{}.AddConsole(mgr) }

// AddConsole is the function AddConsole with o.
func (o ConsoleOptions) AddConsole(mgr ctrl.Manager) error {
	c, err := cacheOf(mgr)
	if err != nil {
		return fmt.Errorf("add the console: %w", err)
	}
	s := &display{cache: c, elected: mgr.Elected(), running: make(chan struct{}), began: time.Now()}
	if old := theConsole.Load(); old != nil && old.hasBegun() || !theConsole.CompareAndSwap(old, s) {
		return errors.New("add the console: another manager of this process has one and is running; add it to one of them")
	}
	for _, err := range []error{
		mgr.Add(s),
		mgr.AddMetricsServerExtraHandler(console.Path, o.guarded(console.Handler(s))),
		mgr.AddMetricsServerExtraHandler(console.JSONPath, o.guarded(console.JSON(s))),
	} {
		if err != nil {
			theConsole.CompareAndSwap(s, nil)
			return fmt.Errorf("add the console: %w", err)
		}
	}
	return nil
}

// guarded refuses requests of other machines, unless o has Remote.
func (o ConsoleOptions) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); !o.Remote && (err != nil || ip == nil || !ip.IsLoopback()) {
			http.Error(w, "the console answers only this machine: use kubectl port-forward, or set Remote of bridge.ConsoleOptions and FilterProvider of the metrics server", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// theConsole is that of the process; nil: there is none. controller-runtime makes queues by a function
// that knows no manager.
var theConsole atomic.Pointer[display]

// display is a manager of controller-runtime as a console shows it.
type display struct {
	cache    *kinds
	elected  <-chan struct{}
	began    time.Time
	running  chan struct{} // closed by Start
	stopping atomic.Bool
	group    taskgroup.Group
	workers  sync.Map // by stacks.ID: the *work that a goroutine does
	events   sync.Map // by stacks.ID: the *source.Cause that a goroutine delivers
	mu       struct {
		sync.Mutex
		controllers []console.Controlled
	}
}

var _ console.Program = (*display)(nil)

// Start implements manager.Runnable.
func (s *display) Start(ctx context.Context) error {
	close(s.running)
	defer theConsole.CompareAndSwap(s, nil)
	stop := context.AfterFunc(ctx, func() { s.stopping.Store(true) })
	defer stop()
	return s.group.Run(ctx)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*display) NeedLeaderElection() bool { return false }

func (s *display) hasBegun() bool {
	select {
	case <-s.running:
		return true
	default:
		return false
	}
}

// add shows a controller, which run runs until its queue ends.
func (s *display) add(c console.Controlled, run func(context.Context) error) error {
	if err := s.group.Go(run); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.controllers = append(s.mu.controllers, c)
	return nil
}

// remove ends add.
func (s *display) remove(c console.Controlled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.controllers = slices.DeleteFunc(s.mu.controllers, func(other console.Controlled) bool { return other == c })
}

func (s *display) controllers() []console.Controlled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.controllers)
}

// Parts implements console.Program.
func (s *display) Parts() console.Parts {
	p := console.Parts{
		Program: filepath.Base(os.Args[0]), Now: time.Now(), Phase: s.phase(), Since: s.began,
		Informers: s.cache.factory.Snapshot(), Findings: map[string][]reconcile.Finding{},
	}
	select {
	case <-s.elected:
	default:
		p.Leadership = &console.Leadership{Holder: "another process"}
	}
	for _, c := range s.controllers() {
		p.Controllers = append(p.Controllers, c.Snapshot())
		if found := c.Findings(); len(found) > 0 {
			p.Findings[c.Name()] = found
		}
	}
	return p
}

func (s *display) phase() string {
	switch {
	case s.stopping.Load():
		return "stopping"
	case s.hasBegun():
		return "running"
	}
	return "starting"
}

// Sharing implements console.Program: replicas of controller-runtime share nothing.
func (s *display) Sharing() *console.Sharing { return nil }

// Stopping implements console.Program.
func (s *display) Stopping() bool { return s.stopping.Load() }

// Controller implements console.Program.
func (s *display) Controller(name string) console.Controlled {
	for _, c := range s.controllers() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// Cached implements console.Program.
func (s *display) Cached(kind schema.GroupKind, key kube.Key) (kube.Object, schema.GroupVersionKind) {
	for _, known := range s.cache.factory.Kinds() {
		if known.GroupKind() != kind {
			continue
		}
		if obj := s.cache.factory.Cached(known, key, nil); obj != nil {
			return obj, known
		}
	}
	return nil, schema.GroupVersionKind{}
}

// workOf returns what the calling goroutine, a worker, does; nil: nothing that is recorded.
func workOf() *work {
	s := theConsole.Load()
	if s == nil {
		return nil
	}
	if w, ok := s.workers.Load(stacks.Self()); ok {
		return w.(*work)
	}
	return nil
}

// during calls deliver, whose additions to queues have a cause.
func during(cause func() source.Cause, deliver func()) {
	s := theConsole.Load()
	if s == nil || !s.hasBegun() {
		deliver()
		return
	}
	self, why := stacks.Self(), cause()
	s.events.Store(self, &why)
	defer s.events.Delete(self)
	deliver()
}

// event returns why the calling goroutine adds keys; nil: not known.
func (s *display) event() *source.Cause {
	if c, ok := s.events.Load(stacks.Self()); ok {
		return c.(*source.Cause)
	}
	return nil
}

// attributing is a transport that adds the reconcile of the calling goroutine to the context of a
// request which has none.
type attributing struct{ next http.RoundTripper }

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t attributing) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t attributing) RoundTrip(req *http.Request) (*http.Response, error) {
	if contextvalues.TaskOf(req.Context()) == nil {
		if w := workOf(); w != nil && w.task != nil {
			req = req.WithContext(w.in(req.Context()))
		}
	}
	return t.next.RoundTrip(req)
}
