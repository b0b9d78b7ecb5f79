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

// closeWithin bounds how long closing an answer waits for its connection to
// become free.
const closeWithin = time.Second

// exchange sends req and returns the answer, whose body ends with ctx. When ctx
// ends, it closes the body instead of cancelling the request: HTTP/2 cleans up
// the stream of a cancelled request later, and until then the connection counts
// as busy and is not closed with the idle ones. The exception is cancelsHTTP1.
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
		return nil, err // contains the method and the address
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
	body.unhook = context.AfterFunc(ctx, func() {
		if cancelsHTTP1 && answer.ProtoMajor < 2 {
			s.givenUp.add(used)
			cancel(nil)
			return
		}
		_ = body.end()
	})
	return answer, nil
}

// answerBody is the body of an answer, closed when its context ends.
type answerBody struct {
	io.ReadCloser
	ctx    context.Context
	end    func() error
	unhook func() bool
}

// Read returns the cause of the context's end if that closed the body.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

// Close waits until the connection is free, at most closeWithin.
func (b *answerBody) Close() error {
	if b.unhook != nil {
		b.unhook()
	}
	return b.end()
}

// clearEvery is the polling interval for connections to close.
const clearEvery = 5 * time.Millisecond

// CloseIdle closes the connections that no request uses. It blocks for at most
// closeWithin: the transport cleans up the stream of an abandoned request
// later, without a notification.
func (s *Server) CloseIdle() {
	// http.Client does not close connections of wrapped transports.
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

// distrust closes the idle connections if ctx ended because the server was
// silent: they may all be dead, and the next request must not wait on one.
func (s *Server) distrust(ctx context.Context) {
	if cause := context.Cause(ctx); errors.Is(cause, base.ErrSilent) || errors.Is(cause, base.ErrSlow) {
		utilnet.CloseIdleConnectionsFor(s.transport())
	}
}

type elsewhereKey struct{}

// Elsewhere returns a context for requests that use a new connection and bypass
// HTTP caches.
func Elsewhere(ctx context.Context) context.Context {
	return context.WithValue(ctx, elsewhereKey{}, true)
}

// transport returns the client's transport. http.Client does not close idle
// connections of wrapped transports.
func (s *Server) transport() http.RoundTripper {
	return cmp.Or(s.client.Transport, http.DefaultTransport)
}

// usedConns holds the open connections of requests that were abandoned before
// their answer. The zero value is ready to use. Safe for concurrent use.
type usedConns struct {
	mu struct {
		sync.Mutex
		conns []net.Conn
	}
}

// add adds conn, which is nil if the transport did not report it.
func (u *usedConns) add(conn net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pruneLocked()
	if conn != nil && !slices.Contains(u.mu.conns, conn) {
		u.mu.conns = append(u.mu.conns, conn)
	}
}

func (u *usedConns) open() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pruneLocked()
	return len(u.mu.conns) > 0
}

func (u *usedConns) pruneLocked() {
	u.mu.conns = slices.DeleteFunc(u.mu.conns, func(conn net.Conn) bool {
		// No transport sets read deadlines; a closed connection returns an
		// error.
		return conn.SetReadDeadline(time.Time{}) != nil
	})
}
