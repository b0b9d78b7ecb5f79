// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package bodylimit limits how much of a server's answers is read into memory. It
// counts decompressed bytes: 2 MB on the wire can be gigabytes.
//
//	up to 1 MiB     any number of answers at once
//	up to 16 MiB    eight
//	up to the limit one
//
// An answer that exceeds a threshold waits for a place. An answer that waits
// for a higher place holds no place that the holder of that place needs, so
// there is no deadlock.
package bodylimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Limit of one answer in bytes, if the request's context has no other.
const Limit = 128 << 20

const (
	small, middle  = 1 << 20, 16 << 20
	middleAtOnce   = 8
	largeAtOnce    = 1
	longestWaiting = 30 * time.Second
)

// TooLargeError means that an answer is too large to read into memory, or that
// it or an object in it would take too much memory when decoded.
type TooLargeError struct {
	Limit      int64  // in bytes, after decompression
	Request    string // method and path
	Compressed bool
	// Decoded is the least that decoding would allocate; 0: Limit is for
	// reading.
	Decoded int64
}

func (e *TooLargeError) Error() string {
	if e.Decoded > 0 {
		return fmt.Sprintf("decoding the answer takes about %d bytes of memory or more, and %d are allowed; nothing of it was decoded", e.Decoded, e.Limit)
	}
	how := ""
	if e.Compressed {
		how = " when decompressed"
	}
	return fmt.Sprintf("the answer to %s is larger than %d bytes%s, which is more than is read into memory; ask for less at a time", e.Request, e.Limit, how)
}

// TooLarge returns the limit, and what decoding would take, or 0 if the limit
// is for reading.
func (e *TooLargeError) TooLarge() (limit, decoded int64) { return e.Limit, e.Decoded }

// Budget limits the answers of one process. Make it with NewBudget. Safe for
// concurrent use.
type Budget struct {
	middle, large *semaphore.Weighted
}

// NewBudget returns an unused budget.
func NewBudget() *Budget {
	return &Budget{middle: semaphore.NewWeighted(middleAtOnce), large: semaphore.NewWeighted(largeAtOnce)}
}

type limitKey struct{}

// WithLimit returns a context for requests whose answers may have limit bytes.
func WithLimit(ctx context.Context, limit int64) context.Context {
	return context.WithValue(ctx, limitKey{}, limit)
}

// LimitOf returns the limit of requests with ctx.
func LimitOf(ctx context.Context) int64 {
	if limit, given := ctx.Value(limitKey{}).(int64); given {
		return limit
	}
	return Limit
}

// Wrap limits the answers that come through next.
func (b *Budget) Wrap(next http.RoundTripper) http.RoundTripper { return bounded{next, b} }

// Ensure returns transport if it is limited already, else limits it with a new
// budget. Nil is the default transport.
func Ensure(transport http.RoundTripper) http.RoundTripper {
	for t := transport; t != nil; {
		if _, is := t.(bounded); is {
			return transport
		}
		wrapper, wraps := t.(interface{ WrappedRoundTripper() http.RoundTripper })
		if !wraps {
			break
		}
		t = wrapper.WrappedRoundTripper()
	}
	transport = cmp.Or(transport, http.DefaultTransport)
	return NewBudget().Wrap(transport)
}

type bounded struct {
	next   http.RoundTripper
	budget *Budget
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil || resp.StatusCode == http.StatusSwitchingProtocols || streams(req) {
		return resp, err
	}
	ctx, cancel := context.WithCancel(req.Context())
	resp.Body = &body{
		ReadCloser: resp.Body, budget: b.budget, ctx: ctx, cancel: cancel,
		tooLarge: TooLargeError{Limit: LimitOf(req.Context()), Request: req.Method + " " + req.URL.Path, Compressed: resp.Uncompressed},
	}
	return resp, nil
}

// WrappedRoundTripper exposes the wrapped transport to client-go.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// streams reports whether the answer to a request is a stream, not read into
// memory: a watch, a log, a proxied answer.
func streams(req *http.Request) bool {
	query := req.URL.Query()
	if watch := query.Get("watch"); watch != "" && watch != "false" && watch != "0" || req.Header.Get("Upgrade") != "" {
		return true
	}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	for i, part := range parts {
		named := i >= 2 && slices.Contains([]string{"pods", "services", "nodes"}, parts[i-2])
		last := i == len(parts)-1
		switch {
		case part == "watch" && (i >= 2 && parts[i-2] == "api" || i >= 3 && parts[i-3] == "apis"):
			return true // deprecated watches: /api/v1/watch, /apis/group/version/watch
		case named && (part == "proxy" || last && slices.Contains([]string{"log", "exec", "attach", "portforward"}, part)):
			return true
		}
	}
	return false
}

// body is the body of an answer. One goroutine reads it; any may close it.
type body struct {
	io.ReadCloser
	budget   *Budget
	ctx      context.Context // of the wait for a place
	cancel   context.CancelFunc
	tooLarge TooLargeError
	read     int64
	failed   error

	mu struct {
		sync.Mutex
		held  []*semaphore.Weighted
		ended bool
	}
}

// Read reads within the limit, and blocks for a place.
func (b *body) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.tooLarge.Limit-b.read+1)])
	before := b.read
	b.read += int64(n)
	switch {
	case b.read > b.tooLarge.Limit:
		b.failed = &b.tooLarge
	case before <= small && b.read > small:
		b.failed = b.enter(b.budget.middle)
	}
	if b.failed == nil && before <= middle && b.read > middle {
		b.failed = b.enter(b.budget.large)
	}
	if b.failed != nil {
		_ = b.Close()
		return 0, b.failed
	}
	if err != nil {
		b.leave()
	}
	return n, err
}

// enter blocks until there is a place.
func (b *body) enter(places *semaphore.Weighted) error {
	ctx, cancel := context.WithTimeout(b.ctx, longestWaiting)
	defer cancel()
	if err := places.Acquire(ctx, 1); err != nil {
		if b.ctx.Err() == nil {
			err = fmt.Errorf("the process has read other large answers for %s", longestWaiting)
		}
		return fmt.Errorf("read more than %d bytes of the answer to %s: %w", b.read, b.tooLarge.Request, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.ended {
		places.Release(1)
		return errors.New("read of a body that is closed")
	}
	b.mu.held = append(b.mu.held, places)
	return nil
}

// leave releases the places.
func (b *body) leave() {
	b.cancel()
	b.mu.Lock()
	held := b.mu.held
	b.mu.held, b.mu.ended = nil, true
	b.mu.Unlock()
	for _, places := range held {
		places.Release(1)
	}
}

// Close also ends a wait for a place.
func (b *body) Close() error {
	b.leave()
	return b.ReadCloser.Close()
}
