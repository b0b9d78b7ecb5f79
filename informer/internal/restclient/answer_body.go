// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// closeWithin bounds how long the end of an answer waits for the connection to
// be free again.
const closeWithin = time.Second

// exchange sends req and returns the answer, whose body ends with ctx. When
// ctx ends, the body is closed rather than the request cancelled: of HTTP/2 a
// cancelled request leaves its stream to be cleared later, and until then the
// connection counts as busy and is not closed with the idle ones.
func (s *Server) exchange(ctx context.Context, req *http.Request) (*http.Response, error) {
	sent, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	giveUp := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	var used net.Conn
	traced := httptrace.WithClientTrace(sent, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { used = got.Conn }})
	answer, err := s.client.Do(req.WithContext(traced))
	if err != nil {
		if !giveUp() {
			s.givenUp.add(used)
		}
		cancel(nil)
		return nil, err // names the method and the address
	}
	body := &answerBody{ReadCloser: answer.Body, ctx: ctx}
	body.end = sync.OnceValue(func() error {
		late := time.AfterFunc(closeWithin, func() {
			s.givenUp.add(used)
			cancel(nil)
		})
		defer late.Stop()
		defer cancel(nil)
		return body.ReadCloser.Close()
	})
	answer.Body = body
	if !giveUp() {
		s.givenUp.add(used)
		_ = body.Close()
		return nil, context.Cause(ctx)
	}
	body.unhook = context.AfterFunc(ctx, func() { _ = body.end() })
	return answer, nil
}

// answerBody is the body of an answer. It is closed when its context ends.
type answerBody struct {
	io.ReadCloser
	ctx    context.Context
	end    func() error
	unhook func() bool
}

// Read fails with the cause of the context's end when that has closed the body.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

// Close waits until the connection is free again, or for closeWithin.
func (b *answerBody) Close() error {
	if b.unhook != nil {
		b.unhook()
	}
	return b.end()
}

// clearEvery is how often connections are looked at that are to be closed.
const clearEvery = 5 * time.Millisecond

// CloseIdle closes the connections that no request uses. It blocks for
// closeWithin at most: of a request that was given up before its answer, the
// transport clears the stream after the fact, and tells nobody.
func (s *Server) CloseIdle() {
	// Of a client with wrapped transports http.Client closes nothing.
	transport := s.client.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	utilnet.CloseIdleConnectionsFor(transport)
	late := time.Now().Add(closeWithin)
	for s.givenUp.open() && time.Now().Before(late) {
		time.Sleep(clearEvery)
		utilnet.CloseIdleConnectionsFor(transport)
	}
}

// distrust closes the idle connections when ctx has ended because the server
// was silent: whatever swallowed one connection has perhaps swallowed all, and
// the next request must not wait on one of them.
func (s *Server) distrust(ctx context.Context) {
	if cause := context.Cause(ctx); errors.Is(cause, base.ErrSilent) || errors.Is(cause, base.ErrSlow) {
		utilnet.CloseIdleConnectionsFor(s.transport())
	}
}

type elsewhereKey struct{}

// Elsewhere is ctx for requests that go over another connection than those
// before, and past HTTP caches.
func Elsewhere(ctx context.Context) context.Context {
	return context.WithValue(ctx, elsewhereKey{}, true)
}

// transport is what the client sends by. Of wrapped transports http.Client closes
// no idle connections.
func (s *Server) transport() http.RoundTripper {
	return cmp.Or(s.client.Transport, http.DefaultTransport)
}

// usedConns are the connections of requests that were given up before their
// answer, as long as they are open. Ready as its zero value, safe for
// concurrent use.
type usedConns struct {
	mu struct {
		sync.Mutex
		conns []net.Conn
	}
}

// add takes conn, which may be nil: the transport did not say.
func (u *usedConns) add(conn net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pruneLocked()
	if conn != nil && !slices.Contains(u.mu.conns, conn) {
		u.mu.conns = append(u.mu.conns, conn)
	}
}

// open reports whether one of them is not closed.
func (u *usedConns) open() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pruneLocked()
	return len(u.mu.conns) > 0
}

func (u *usedConns) pruneLocked() {
	u.mu.conns = slices.DeleteFunc(u.mu.conns, func(conn net.Conn) bool {
		// No transport sets deadlines for reading; a closed connection refuses.
		return conn.SetReadDeadline(time.Time{}) != nil
	})
}
