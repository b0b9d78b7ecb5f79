// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/pipe"
)

// RunMain is World.RunAs for a program that has no Flyball manager, such as one of
// controller-runtime. main does what the program does with its connection: it makes a
// manager or clients of cfg, blocks until ctx ends, and returns nil. It must open no
// ports, and leave nothing in global variables that a second call of main would meet:
// after a crash another process is another call.
//
// A main that returns an error before it was asked to stop is started again after a
// second. What it returns while it stops fails the run. Runs of such a program may
// differ for one seed, and the report says so. docs/testing.md lists the invariants
// that hold for it. RunMain returns at once. A nil main fails the run.
func RunMain(w *World, name string, main func(ctx context.Context, cfg *rest.Config) error) {
	if main == nil {
		w.Fatalf("misuse: RunMain: main is nil; give the function that runs the program, func(ctx context.Context, cfg *rest.Config) error")
	}
	w.record.drift()
	w.history.Inexact = cmp.Or(w.history.Inexact, drifting)
	w.run("RunMain", &program{w: w, name: name, main: main})
}

// drifting is why runs of a seed may differ.
const drifting = "a program of RunMain has goroutines and random numbers that the simulation does not order"

const (
	// calm is how long nothing must have moved at rest if there is a program of
	// RunMain, whose queues are not known: longer than client-go waits before it
	// repeats a request that failed during the faults.
	calm = 75 * time.Second
	// outlives is how long goroutines of such a program may go on after main has
	// returned; in production they end with the process.
	outlives = 2 * time.Minute
	// silence is after how long client-go's health check of HTTP/2 breaks a silent
	// connection.
	silence = 45 * time.Second
)

// The second of apimachinery's handlers of errors sleeps until a millisecond after the last
// error of the process, by a global time: in a bubble, whose clock is behind, for decades.
func init() {
	if len(utilruntime.ErrorHandlers) == 2 {
		utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	}
}

// outsider is the part of a process that a program without a Flyball manager has.
type outsider struct {
	p       *process
	dialled dialled
}

// takes reports whether a fault of this verb can happen in the process: the kit reaches
// into the reconciles and handlers of Flyball alone.
func (o *outsider) takes(v Verb) bool {
	switch {
	case o == nil:
		return true
	case v == panics || v == hang:
		return false
	case v == stall:
		o.p.mu.Lock()
		defer o.p.mu.Unlock()
		return o.p.mu.hooked
	}
	return true
}

// exited is that of its process. With its end the process is gone, whatever goroutines are
// left.
func (o *outsider) exited(err error) (next func()) {
	p := o.p
	p.w.record.add(Event{What: Exited, Who: p.name, Text: errorText(err)})
	p.mu.Lock()
	dead, stopped, starts := p.mu.dead, p.mu.stopping, p.mu.next
	p.mu.dead = true
	p.mu.Unlock()
	p.eachNetwork(breakOff)
	stopped = stopped || p.w.programs.closed()
	switch {
	case dead:
		return nil
	case err != nil && stopped && !p.stood():
		p.w.record.fail("V11", fmt.Sprintf("%s was asked to stop, and its main returned %v", p.name, err))
	case err == nil && !stopped:
		p.w.record.fail("V11", p.name+" ended by itself: its main returned nil, and its context had not ended")
	case err != nil && !stopped && p.w.record.rested():
		p.w.record.fail("V11", fmt.Sprintf("%s ended by itself at rest: %v", p.name, err))
	}
	if stopped {
		return p.w.clock.faultyFor(p.name+" stopped", max(time.Until(starts), time.Millisecond))
	}
	return func() { p.w.clock.rest(p.name+" kubelet", kubelets) }
}

// discover answers a request that is for no resource, such as discovery, in no time. The
// REST mapper of controller-runtime holds a lock during it, and virtual time cannot pass
// while another goroutine waits for that lock.
func (o *outsider) discover(r *http.Request) (*http.Response, error) {
	p := o.p
	p.mu.Lock()
	refused, parted := p.mu.dead || p.mu.refused, p.mu.parted
	p.mu.Unlock()
	switch {
	case refused:
		return nil, &net.OpError{Op: "dial", Net: "simulated", Err: syscall.ECONNREFUSED}
	case parted:
		return nil, &net.OpError{Op: "dial", Net: "simulated", Err: syscall.ETIMEDOUT}
	}
	return p.w.server.Direct("user").RoundTrip(r)
}

// steady returns r with a duration of the watch that the seed draws, in place of the one
// that client-go does.
func (o *outsider) steady(r *http.Request) *http.Request {
	query := r.URL.Query()
	if !query.Has("timeoutSeconds") || !query.Has("watch") {
		return r
	}
	drawn := 300 + o.p.w.clock.draws.Next(o.p.name+" watch "+r.URL.Path)%300
	query.Set("timeoutSeconds", fmt.Sprint(drawn))
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	return r
}

// breakOff ends all connections for good.
func breakOff(n *simulate.Network) {
	n.Refuse(true)
	n.Cut()
}

// dialled are the open connections of a process of RunMain.
type dialled struct {
	mu struct {
		sync.Mutex
		open map[*pipe.Conn]bool
	}
}

// add returns c, forgotten by its Close.
func (d *dialled) add(c net.Conn) net.Conn {
	own, ok := c.(*pipe.Conn)
	if !ok {
		return c
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.open == nil {
		d.mu.open = map[*pipe.Conn]bool{}
	}
	d.mu.open[own] = true
	return watched{own, d}
}

// breakSilent breaks the connections that receive nothing any more, for their process.
func (d *dialled) breakSilent() {
	d.mu.Lock()
	var silent []*pipe.Conn
	for c := range d.mu.open {
		if c.Silent() {
			silent = append(silent, c)
		}
	}
	d.mu.Unlock()
	for _, c := range silent {
		_ = c.Close()
	}
}

type watched struct {
	*pipe.Conn
	in *dialled
}

// Close ends the connection.
func (c watched) Close() error {
	c.in.mu.Lock()
	delete(c.in.mu.open, c.Conn)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// checkHealth does, after a fault that lasts for d has begun, what the health check of
// HTTP/2 does for client-go's connections: these break after a while in which nothing
// arrives. It does nothing for a Flyball manager, which has time limits of its own.
func (o *outsider) checkHealth(d time.Duration) {
	if o == nil {
		return
	}
	for _, after := range []time.Duration{silence, silence + d} {
		o.p.w.clock.group.Go(func() {
			if o.p.w.clock.instants.Rest(o.p.w.clock.ctx, o.p.name+" health", after) {
				o.dialled.breakSilent()
			}
		})
	}
}
