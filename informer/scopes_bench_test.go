// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// silent is a ListerWatcher whose server never answers.
type silent struct{}

func (silent) List(ctx context.Context, _ listwatch.ListOptions) (listwatch.Page[kube.Object], error) {
	<-ctx.Done()
	return listwatch.Page[kube.Object]{}, ctx.Err()
}

func (silent) Watch(ctx context.Context, _ listwatch.WatchOptions) (listwatch.Stream[kube.Object], error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// namespacesNamed returns a scope of n namespaces.
func namespacesNamed(n int) (s Scope) {
	for i := range n {
		s.Namespaces = append(s.Namespaces, fmt.Sprint("ns-", i))
	}
	return s
}

// A handle of many namespaces is opened and released, beside one of another namespace. Each
// namespace has an object. The handles have a handler each.
func BenchmarkScopes_OpenAndRelease(b *testing.B) {
	for _, n := range []int{1000, 4000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, stop := beginScopes(b)
			defer stop()
			if _, err := c.handle([]Scope{{Namespaces: []string{"stays"}}}, nil); err != nil {
				b.Fatal(err)
			}
			scope := namespacesNamed(n)
			b.ReportAllocs()
			for b.Loop() {
				h, err := c.handle([]Scope{scope}, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				fill(c, h)
				b.StartTimer()
				h.release()
			}
		})
	}
}

// How long an event and an own write of one namespace take at most, to the handler, while a
// handle of many other namespaces is opened, is opened again with all objects known, and is
// released; and, to compare, while nothing else happens.
func BenchmarkScopes_LongestWait(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, stop := beginScopes(b)
			defer stop()
			p := newWaitProbe(b, c)
			scope := namespacesNamed(n)
			for b.Loop() {
				p.during("idle", func() { <-time.After(time.Second) })
				var first, second *handle
				p.during("open", func() { first = withHandler(b, c, scope) })
				fill(c, first)
				p.during("join", func() { second = withHandler(b, c, scope) })
				p.during("leave", func() { second.release() })
				p.during("release", func() { first.release() })
			}
			p.report()
		})
	}
}

// beginScopes runs an informer whose server never answers.
func beginScopes(b *testing.B) (c *core, stop func()) {
	c = newCore(reflect.TypeFor[kube.Object](), fixture.ThingKind, Options{}, func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) { return silent{}, nil })
	c.shared = true
	c.convert = func(w kube.Written) (kube.Object, error) { return w.Object, nil }
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- c.run(ctx) }()
	return c, func() {
		cancel()
		<-done
	}
}

func withHandler(b *testing.B, c *core, scope Scope) *handle {
	h, err := c.handle([]Scope{scope}, nil)
	if err == nil {
		_, err = h.join(func(kube.Event[kube.Object]) {}, HandlerOptions{})
	}
	if err != nil {
		b.Error(err)
	}
	return h
}

// fill stores the list of each scope of h, of one object.
func fill(c *core, h *handle) {
	for part := range slices.Chunk(h.holds, 500) {
		var lists store.Batch
		for _, w := range part {
			obj := fixture.NewThing(kube.Key{Namespace: w.scope.Namespace, Name: "a"}, types.UID(w.scope.Namespace), 5, "")
			lists.Deltas = append(lists.Deltas, store.Delta{Type: store.Added, Key: kube.KeyOf(obj), Scope: w.id, UID: obj.GetUID(), Version: 5, Object: obj})
		}
		c.store(lists, false, func() ([]store.Change, error) { return c.indexer.Apply(lists) })
	}
}

// waitProbe sends an event and an own write each millisecond.
type waitProbe struct {
	b       *testing.B
	core    *core
	handle  *handle
	version kube.Version
	heard   chan struct{}
	longest map[string]time.Duration
}

func newWaitProbe(b *testing.B, c *core) *waitProbe {
	p := &waitProbe{b: b, core: c, version: 10, heard: make(chan struct{}, 1), longest: make(map[string]time.Duration)}
	var err error
	if p.handle, err = c.handle([]Scope{{Namespaces: []string{"stays"}}}, nil); err == nil {
		_, err = p.handle.join(func(kube.Event[kube.Object]) { p.heard <- struct{}{} }, HandlerOptions{})
	}
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// during measures while do runs.
func (p *waitProbe) during(what string, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	for tick := time.NewTicker(time.Millisecond); ; {
		obj := p.next()
		p.time(what+"-event-ms", func() {
			p.core.fifo.Push(store.Delta{Type: store.Updated, Key: kube.KeyOf(obj), Scope: p.handle.holds[0].id, UID: obj.GetUID(), Version: p.version, Object: obj})
		})
		obj = p.next()
		p.time(what+"-write-ms", func() {
			p.core.writes.observe(kube.Written{Kind: fixture.ThingKind, Effect: kube.Stored, Key: kube.KeyOf(obj), UID: obj.GetUID(), Version: p.version, Object: obj})
		})
		select {
		case <-tick.C:
		case <-done:
			tick.Stop()
			return
		}
	}
}

func (p *waitProbe) next() kube.Object {
	p.version++
	return fixture.NewThing(kube.Key{Namespace: "stays", Name: "a"}, "stays", p.version, "")
}

func (p *waitProbe) time(what string, do func()) {
	began := time.Now()
	do()
	<-p.heard
	p.longest[what] = max(p.longest[what], time.Since(began))
}

func (p *waitProbe) report() {
	for what, longest := range p.longest {
		p.b.ReportMetric(float64(longest.Microseconds())/1000, what)
	}
}
