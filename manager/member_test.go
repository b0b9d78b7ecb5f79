// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// turn is a shard that the test gives and takes.
type turn struct {
	here    chan struct{} // a token: the process holds it
	mu      sync.Mutex
	release context.CancelFunc // of what runs
}

func (o *turn) Alone(ctx context.Context, _ int, run func(context.Context) error) error {
	for {
		select {
		case <-o.here:
		case <-ctx.Done():
			return nil
		}
		in, end := context.WithCancel(ctx)
		o.mu.Lock()
		o.release = end
		o.mu.Unlock()
		if err := run(in); ctx.Err() != nil || in.Err() == nil {
			end()
			return err
		}
	}
}

func (o *turn) take() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release()
}

// blocker runs until its context ends.
type blocker struct{}

func (blocker) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// late is synced when the test says so, and never starts.
type late struct {
	blocker
	synced chan struct{}
}

func (l late) Synced() <-chan struct{} { return l.synced }
func (late) Started() <-chan struct{}  { return make(chan struct{}) }

// cached keeps a cache.
type cached struct{ blocker }

func (cached) Snapshot() state.Informer {
	return state.Informer{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}}
}
func (cached) Progress() informer.Progress { return informer.Progress{} }

// steered can be paused.
type steered struct {
	blocker
	inspect.Controllable
}

func (steered) Name() string { return "steered" }

// What runs on one replica alone is known for what it is: readiness waits for what it syncs where
// it runs, its cache is among the informers there, and it can be paused.
func TestMember_OfOneReplicaHidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRunnables()
		all.shared = new(informer.SharedInformerFactory)
		g := all.groups[len(all.groups)-1]
		one := late{synced: make(chan struct{})}
		var turns []*turn
		for _, r := range []Runnable{one, &cached{}, steered{}} {
			o := &turn{here: make(chan struct{}, 1)}
			turns = append(turns, o)
			if _, err := g.join(r, r, o, nameOf(r), notices{fault: func(err error) { t.Error(err) }, forgotten: func() {}}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { g.run(ctx) })
		defer running.Wait()
		defer stop()
		if !g.opened(ctx) {
			t.Error("the stage has not started, though what has not is on another replica")
		}
		check := func(when string, here bool) {
			t.Helper()
			synctest.Wait()
			m := g.snapshot()[0]
			if _, is := syncCheck(m, nil); !is || m.elsewhere() == here {
				t.Errorf("%s: it has a check of its sync: %v; it runs elsewhere: %v, want %v", when, is, m.elsewhere(), !here)
			}
			want := map[bool]int{true: 1}[here]
			if n := len(all.informers()) - len(all.shared.Snapshot()); n != want {
				t.Errorf("%s: there are %d informers, want %d", when, n, want)
			}
			if n := len(all.progress()) - len(all.shared.Progress()); n != want {
				t.Errorf("%s: there are %d informers that make progress, want %d", when, n, want)
			}
			if n := len(all.pausable()); n != 1 {
				t.Errorf("%s: %d can be paused, want 1", when, n)
			}
			if n := len(g.running()); n != 3*want {
				t.Errorf("%s: %d run, want %d", when, n, 3*want)
			}
		}
		check("elsewhere", false)
		for range 2 {
			for _, o := range turns {
				o.here <- struct{}{}
			}
			check("here", true)
			for _, o := range turns {
				o.take()
			}
			check("elsewhere again", false)
		}
	})
}
