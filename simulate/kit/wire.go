// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
)

// This file is between a process and the network.

func (p *process) transport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := p.network.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if p.heldUntil().After(time.Now()) { // a held process does not learn that it is connected
			p.Step(p.w.clock.ctx, "connect", "")
		}
		if p.outside != nil {
			c = p.outside.dialled.add(c)
		}
		return conn{c, p}, nil
	}}
}

// conn is the process's end of a connection. Data that arrives while the process is
// held is read afterwards, and so is the end of the connection.
type conn struct {
	net.Conn
	p *process
}

// Read blocks for data, and while the process is held.
func (c conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.p.heldUntil().After(time.Now()) {
		c.p.Step(c.p.w.clock.ctx, "receive", "")
	}
	return n, err
}

// pace makes data arrive within a fifth of a millisecond, and none while the process is
// held.
func (p *process) pace(line string, nth int, earliest time.Time) time.Time {
	if until := p.heldUntil(); until.After(earliest) {
		earliest = until
	}
	jitter := 1 + time.Duration(seededrand.Drawn(p.w.seed, line, uint64(nth))%uint64(latency))
	return p.w.clock.instants.Take(time.Now(), earliest.Add(jitter))
}

const latency = 200 * time.Microsecond

// sender gives each request its own instant, and another to one that ends as the
// process stops.
type sender struct {
	p    *process
	next *http.Transport
}

// RoundTrip sends r.
func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.p.outside != nil {
		if s.p.w.server.Reads(r).Resource.Resource == "" {
			return s.p.outside.discover(r)
		}
		r = s.p.outside.steady(r)
	}
	what := r.URL.Path + " " + r.Header.Get("Accept")
	s.p.Step(r.Context(), "send "+r.Method, what)
	err := r.Context().Err()
	if err == nil {
		err = s.p.leaves(r)
	}
	if err != nil {
		s.p.apart(what)
		return nil, err
	}
	sent := s.p.sends.add(s.p.w.server, r)
	answer, err := s.next.RoundTrip(r)
	s.p.sends.drop(sent)
	s.p.asked(r, answer, err)
	if err != nil { // from the context or the client's own timer, whichever is first
		s.p.apart(what)
	}
	return answer, err
}

// leaves fires the faults before the process sends a write, and returns why the write
// is not sent, if so.
func (p *process) leaves(r *http.Request) error {
	if r.Method == http.MethodGet {
		return nil
	}
	request := p.w.server.Reads(r)
	request.Client = p.name
	fired := p.w.faults.met(request, leaving)
	if p.heldUntil().After(time.Now()) {
		p.Step(r.Context(), "send on", r.URL.Path)
	}
	switch err := r.Context().Err(); {
	case err != nil:
		return err
	case breaks(fired):
		return &net.OpError{Op: "write", Net: "simulated", Err: syscall.ECONNRESET}
	}
	return nil
}

// CloseIdleConnections closes idle connections.
func (s *sender) CloseIdleConnections() { s.next.CloseIdleConnections() }
