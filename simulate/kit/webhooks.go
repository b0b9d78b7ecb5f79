// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"

	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
)

// Listen returns the listener of the process's webhooks, in place of a port. Faults of
// the process's network affect it too.
func (p *process) Listen(_ context.Context, address string) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.listens {
		return nil, fmt.Errorf("listen on %s: a process of a simulation has one port, for its webhooks, and that is taken", address)
	}
	p.mu.listens = true
	return doorway{p.inbound.Listener(), p}, nil
}

// doorway is the process's end of its inbound network.
type doorway struct {
	net.Listener
	p *process
}

// Accept blocks for the next connection.
func (d doorway) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn{c, d.p}, nil
}

// Close closes the port for good.
func (d doorway) Close() error {
	d.p.mu.Lock()
	d.p.mu.listens = false
	d.p.mu.Unlock()
	return d.Listener.Close()
}

// answers reports whether the process serves a webhook at path, from the view of a
// Service: its port is open and it is ready.
func (p *process) answers(path string) bool {
	p.mu.Lock()
	open, mgr := p.mu.listens, p.manager
	p.mu.Unlock()
	if !open || mgr == nil || mgr.Webhooks().Check(p.w.clock.ctx) != nil {
		return false
	}
	for _, hook := range mgr.Webhooks().Snapshot().Webhooks {
		if hook.Path == path {
			return true
		}
	}
	return false
}

// service connects the server to processes that serve webhooks, as the Service of a
// Deployment does.
type service struct {
	programs *programs
	draws    *seededrand.Draws
}

// dial connects to a process that serves the webhook and is ready. The seed chooses one
// of several replicas for each call.
func (s service) dial(ctx context.Context, webhook *url.URL) (net.Conn, error) {
	ready := slices.DeleteFunc(s.programs.running(), func(p *process) bool { return !p.answers(webhook.Path) })
	if len(ready) == 0 {
		return nil, fmt.Errorf("dial tcp: connect to %s: connection refused: no process that is ready serves %s", webhook.Host, webhook.Path)
	}
	to := ready[s.draws.Next("webhook "+webhook.Path)%uint64(len(ready))]
	return to.inbound.DialContext(ctx, "tcp", webhook.Host)
}
