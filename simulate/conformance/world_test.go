// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

var (
	configMaps, widgets, widgetKind = fixture.ConfigMaps, fixture.Widgets, fixture.WidgetKind

	newWidget, configMap, key, pass = fixture.NewWidget, fixture.ConfigMap, fixture.Key, fixture.Pass
)

type widget = fixture.Widget

// world is a server, a network and a process that runs flyball's informers,
// in one bubble.
type world struct {
	*fixture.World
	factory *informer.SharedInformerFactory
	group   sync.WaitGroup
	ctx     context.Context
	journal struct {
		sync.Mutex
		lines []string
	}
}

// simulated runs test in a bubble with a server that serves widgets too. What
// the test does not stop ends after it.
func simulated(t *testing.T, opts informer.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	fixture.Run(t, func(t *testing.T, f *fixture.World) {
		w := &world{World: f}
		opts.Logger = w.logger()
		w.connect(w.Config, w.detecting(opts))
		ctx, cancel := context.WithCancel(t.Context())
		w.ctx = ctx
		defer w.group.Wait()
		defer cancel()
		test(t, w)
	})
}

// logger writes to the journal.
func (w *world) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		w.journal.Lock()
		defer w.journal.Unlock()
		w.journal.lines = append(w.journal.lines, prefix+args)
	}, funcr.Options{})
}

// detecting is opts with an eye on every object: no test of this package may
// change one that is shared, unless it says what it does about it.
func (w *world) detecting(opts informer.Options) informer.Options {
	if d := &opts.DetectMutations; d.Rate == 0 {
		d.Rate, d.OnMutation = 1, func(m informer.Mutation) { w.T.Error(m) }
	}
	return opts
}

// connect makes the process's informers anew, with another way to the server.
func (w *world) connect(cfg *rest.Config, opts informer.Options) {
	w.T.Helper()
	factory, err := informer.NewSharedInformerFactory(cfg, w.Scheme, opts)
	w.Must(err)
	w.factory = factory
}

// start runs the informers that were asked for, and returns when they have had
// a second.
func start(w *world) {
	factory := w.factory
	w.group.Go(func() {
		if err := factory.Run(w.ctx); err != nil {
			w.T.Errorf("run informers: %v", err)
		}
	})
	pass(time.Second)
}

// writeOwn changes an object as this process would: the informer is shown the
// answer before the watch can be read.
func (w *world) writeOwn(i *informer.SharedInformer[cmap], name, value string) {
	w.T.Helper()
	was, err := i.Lister().Get(key(name))
	w.Must(err)
	own := kube.Copy(was)
	own.Data["v"] = value
	own.ResourceVersion, err = w.Put(own)
	w.Must(err)
	w.factory.Observe(kube.Written{
		Effect: kube.Stored, Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Key: key(name),
		UID: own.UID, Version: kube.ParseVersion(own.ResourceVersion), Object: own,
	})
}

// asked counts the requests with a verb and a text in path or query.
func (w *world) asked(verb, part string) (n int) {
	for _, r := range w.Served() {
		if r.Verb == verb && strings.Contains(r.Path+"?"+r.Query, part) {
			n++
		}
	}
	return n
}

// lists counts lists of a kind, streaming ones among them.
func (w *world) lists(r schema.GroupResource) int {
	return w.asked("list", "/"+r.Resource+"?") - w.recalls(r) + w.streams(r)
}

// recalls counts the reads of one object after a broken connection (A39).
func (w *world) recalls(r schema.GroupResource) (n int) {
	for _, q := range w.Served() {
		if strings.HasSuffix(q.Path, "/"+r.Resource) && strings.Contains(q.Query, "resourceVersionMatch=Exact") {
			n++
		}
	}
	return n
}

// streams counts streaming lists of a kind.
func (w *world) streams(r schema.GroupResource) (n int) {
	for _, q := range w.Served() {
		if strings.HasSuffix(q.Path, "/"+r.Resource) && strings.Contains(q.Query, "sendInitialEvents=true") {
			n++
		}
	}
	return n
}

// logged counts the lines of the log that have all parts.
func (w *world) logged(parts ...string) (n int) {
	w.journal.Lock()
	defer w.journal.Unlock()
	for _, line := range w.journal.lines {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

// held is what an informer has: "a=1 b=2".
func held[T kube.Object](i *informer.SharedInformer[T]) string {
	var out []string
	for obj := range i.Lister().All() {
		out = append(out, obj.GetName()+"="+valueOf(obj))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func valueOf(obj kube.Object) string {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		return obj.Data["v"]
	case *widget:
		return obj.Spec.Value
	}
	return ""
}

// holds fails the test when an informer has something else than want.
func holds[T kube.Object](t *testing.T, i *informer.SharedInformer[T], want, meaning string) {
	t.Helper()
	if got := held(i); got != want {
		t.Errorf("got %q, want %q: %s; %s", got, want, meaning, stateOf(i))
	}
}

// stateOf is where the first scope of an informer stands.
func stateOf[T kube.Object](i *informer.SharedInformer[T]) state.Scope {
	scopes := i.Snapshot().Scopes
	if len(scopes) == 0 {
		return state.Scope{}
	}
	return scopes[0]
}

// stands fails the test when an informer's first scope is in another state.
func stands[T kube.Object](t *testing.T, i *informer.SharedInformer[T], want state.State, reason string) {
	t.Helper()
	if s := stateOf(i); s.State != want || !strings.Contains(s.Reason, reason) {
		t.Errorf("got %s, want %s because of %q", s, want, reason)
	}
}

// history is what a handler was told.
type history struct {
	mu struct {
		sync.Mutex
		events []string
	}
}

// told has a handler of i write down each event as "added a=1".
func told[T kube.Object](w *world, i *informer.SharedInformer[T]) *history {
	w.T.Helper()
	h := &history{}
	_, err := i.AddHandler(func(e kube.Event[T]) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.mu.events = append(h.mu.events, fmt.Sprintf("%s %s=%s", e.Type, e.Key.Name, valueOf(e.Latest())))
	}, informer.HandlerOptions{EveryEvent: true})
	w.Must(err)
	return h
}

// next is what was told since the last call.
func (h *history) next() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := strings.Join(h.mu.events, ", ")
	h.mu.events = nil
	return out
}
