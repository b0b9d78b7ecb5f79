// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// closeWithin bounds how long the end of an answer waits for the connection to
// be free again.
const closeWithin = time.Second

// exchange sends req and returns the answer, whose body ends with ctx. When
// ctx ends, the body is closed rather than the request cancelled: of HTTP/2 a
// cancelled request leaves its stream to be cleared later, and until then the
// connection counts as busy and is not closed with the idle ones.
func (s *apiServer) exchange(ctx context.Context, req *http.Request) (*http.Response, error) {
	sent, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	giveUp := context.AfterFunc(ctx, func() {
		s.abandoned.Store(true)
		cancel(context.Cause(ctx))
	})
	answer, err := s.client.Do(req.WithContext(sent))
	if err != nil {
		giveUp()
		cancel(nil)
		return nil, err // names the method and the address
	}
	body := &answerBody{ReadCloser: answer.Body, ctx: ctx}
	body.end = sync.OnceValue(func() error {
		late := time.AfterFunc(closeWithin, func() { cancel(nil) })
		defer late.Stop()
		defer cancel(nil)
		return body.ReadCloser.Close()
	})
	answer.Body = body
	if !giveUp() {
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

// Of a request that was given up before its answer, the transport clears the
// stream after the fact and tells nobody. It takes microseconds.
const (
	clearWithin = 50 * time.Millisecond
	clearEvery  = 10 * time.Millisecond
)

// closeIdle closes the connections that no request uses. It blocks for
// clearWithin at most, when requests were given up unanswered.
func (s *apiServer) closeIdle() {
	// Of a client with wrapped transports http.Client closes nothing.
	transport := s.client.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	utilnet.CloseIdleConnectionsFor(transport)
	if !s.abandoned.Load() {
		return
	}
	for range clearWithin / clearEvery {
		time.Sleep(clearEvery)
		utilnet.CloseIdleConnectionsFor(transport)
	}
}
