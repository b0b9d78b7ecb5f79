// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package writegate

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/internal/effects"
)

// Gate refuses writes while this process does not hold the lease. It is in the
// transport of the clients of controllers. It is safe for concurrent use, and nothing
// blocks but Drain and requests.
type Gate struct {
	span    time.Duration // of a term
	refused atomic.Uint64 // number of writes
	writes  writes
	also    func(ctx context.Context) error // nil: nothing
	begun   func(ctx context.Context)       // nil: nobody follows writes
	ended   func(ctx context.Context, outcome effects.Outcome)

	mu struct {
		sync.Mutex
		term term
		wall func() time.Time // the wall clock of a simulation; nil: the machine's
	}
}

// New returns a gate that is shut. span is how long a renewal is trusted, from when it
// was sent.
func New(span time.Duration) *Gate {
	g := &Gate{span: span}
	g.mu.term = lost("it has not been elected yet")
	return g
}

// Also sets what else allows a write, before the first request: check gets the request's context and
// returns why not. It must not block.
func (g *Gate) Also(check func(ctx context.Context) error) { g.also = check }

// Follow sets who learns of writes, before the first request. begun is called with the request's
// context before the gate is checked, and ended, once for each, when it is not in flight any more. The
// server may still carry out one of unknown outcome. Neither may block.
func (g *Gate) Follow(begun func(ctx context.Context), ended func(ctx context.Context, outcome effects.Outcome)) {
	g.begun, g.ended = begun, ended
}

// Now returns the present, for Open.
func (g *Gate) Now() Moment {
	g.mu.Lock()
	wall := g.mu.wall
	g.mu.Unlock()
	m := Moment{running: time.Now()}
	m.wall = m.running
	if wall != nil {
		m.wall = wall()
	}
	return m
}

// SetWall sets the wall clock of a simulation.
func (g *Gate) SetWall(wall func() time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.wall = wall
}

// Open allows writes for the term of a renewal that was sent at sent.
func (g *Gate) Open(sent Moment) { g.set(renewed(sent, g.span)) }

// Shut refuses writes from now on. why is in their error.
func (g *Gate) Shut(why string) { g.set(lost(why)) }

func (g *Gate) set(t term) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.term = t
}

// Ask returns how long a write that begins now may take, or an error if none may begin.
func (g *Gate) Ask() (time.Duration, error) {
	g.mu.Lock()
	t := g.mu.term
	g.mu.Unlock()
	return t.mayWrite(g.Now())
}

// askIn is Ask for a write in ctx.
func (g *Gate) askIn(ctx context.Context) (time.Duration, error) {
	left, err := g.Ask()
	if err == nil && g.also != nil {
		err = g.also(ctx)
	}
	return left, err
}

// Refused returns how many writes were refused or aborted.
func (g *Gate) Refused() uint64 { return g.refused.Load() }

// Drain waits, some seconds at most, until no write is in flight, and cuts off the rest.
// The gate is shut for good. It reports whether the outcome is known of every write that
// ended within the last window.
func (g *Gate) Drain(window time.Duration) (sure bool) { return g.writes.awaitEnd(writesTime, window) }

// begin registers a write. Its context ends when end is called, or when the gate is
// found shut.
func (g *Gate) begin(ctx context.Context) (context.Context, *watched) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watched{ask: func() (time.Duration, error) { return g.askIn(ctx) }, cancel: cancel}
	w.left = func(sure bool, outcome effects.Outcome) {
		g.writes.end(w, sure)
		if g.ended != nil {
			g.ended(ctx, outcome)
		}
	}
	if g.begun != nil {
		g.begun(ctx)
	}
	g.writes.begin(w)
	return ctx, w
}

type watched struct {
	ask    func() (left time.Duration, late error) // the gate
	left   func(sure bool, o effects.Outcome)      // it is not in flight any more; see writes.end
	cancel context.CancelCauseFunc
	mu     struct {
		sync.Mutex
		timer *time.Timer
		ended bool
	}
}

// bound checks the gate again after left, the rest of the term, and repeatedly while
// that is renewed.
func (w *watched) bound(left time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.timer = time.AfterFunc(left, w.look)
}

func (w *watched) look() {
	left, late := w.ask()
	if late != nil {
		w.cancel(late)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.mu.ended {
		w.mu.timer.Reset(left)
	}
}

// end releases the context.
func (w *watched) end() {
	w.mu.Lock()
	w.mu.ended = true
	if w.mu.timer != nil {
		w.mu.timer.Stop()
	}
	w.mu.Unlock()
	w.cancel(nil)
}

// Wrap returns a transport whose writes pass the gate.
func (g *Gate) Wrap(next http.RoundTripper) http.RoundTripper { return fenced{next: next, gate: g} }

// wrapMarked is wrap for a configuration whose Dial is the gate's: see Given.
func (g *Gate) wrapMarked(next http.RoundTripper) http.RoundTripper {
	return fenced{next: next, gate: g, marks: true}
}

// fenced is a transport behind the gate.
type fenced struct {
	next  http.RoundTripper
	gate  *Gate
	marks bool // marks requests for the gate's Dial
}

// RoundTrip implements http.RoundTripper. An allowed write is aborted when the term
// ends without a renewal, and checked again when the end of its body is read: a server
// acts on no write before it has the whole body.
func (f fenced) RoundTrip(req *http.Request) (*http.Response, error) {
	if f.marks {
		req = req.WithContext(context.WithValue(req.Context(), passedKey{}, f.gate))
	}
	writes, stream := kindOf(req)
	if !writes {
		return f.next.RoundTrip(req)
	}
	ctx, w := f.gate.begin(req.Context())
	left, err := f.gate.askIn(ctx)
	if err != nil {
		w.left(true, effects.Refused)
		w.end()
		f.gate.refused.Add(1)
		if req.Body != nil {
			_ = req.Body.Close() // as a RoundTripper must
		}
		return nil, unsent{err}
	}
	if stream {
		w.left(true, effects.Accepted)
		w.end()
		return f.next.RoundTrip(req) // it cannot be bounded
	}
	w.bound(left)
	resp, err := f.send(req.WithContext(ctx), w)
	if err != nil {
		if _, late := f.gate.askIn(ctx); late != nil && req.Context().Err() == nil {
			f.gate.refused.Add(1)
			err = fmt.Errorf("%w; the request had begun, and its outcome is unknown: %v", late, err)
		}
		return nil, err
	}
	resp.Body = answerBody{resp.Body, w.end}
	return resp, nil
}

// send sends an allowed write. It is not in flight any more then, also if the transport panics.
func (f fenced) send(req *http.Request, w *watched) (resp *http.Response, err error) {
	sure, outcome := false, effects.Unknown
	defer func() {
		w.left(sure, outcome)
		if resp == nil || err != nil {
			w.end()
		}
	}()
	resp, err = f.next.RoundTrip(f.held(req))
	code := 0
	if err == nil {
		code = resp.StatusCode
	}
	sure, outcome = answeredSurely(resp, err), effects.OutcomeOf(code, err)
	return resp, err
}

// unsent is the error of a request of which nothing was sent.
type unsent struct{ error }

// Unwrap returns the reason.
func (e unsent) Unwrap() error { return e.error }

// NotSent tells who tracks the outcomes of writes that this one was not carried out; see
// effects.OutcomeOf.
func (unsent) NotSent() bool { return true }

// kindOf reports whether a request may change something, and whether it becomes a stream
// in both directions. Commands in a container, and requests that the server proxies, may
// change something by GET too.
func kindOf(req *http.Request) (writes, stream bool) {
	stream = req.Header.Get("Upgrade") != ""
	switch subresourceIn(req.URL.Path) {
	case "exec", "attach", "portforward":
		return true, true // a websocket's dialer adds the headers later
	case "proxy":
		return true, stream
	}
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return stream, stream
	}
	return true, stream
}

// subresourceIn returns the subresource of a Pod, Service or Node that a path names, also
// under a prefix; empty if there is none.
func subresourceIn(path string) string {
	parts := strings.Split(path, "/")
	for i := 1; i+2 < len(parts); i++ {
		namespaced := (parts[i] == "pods" || parts[i] == "services") && i > 1 && parts[i-2] == "namespaces"
		if namespaced || parts[i] == "nodes" && parts[i-1] == "v1" {
			return parts[i+2]
		}
	}
	return ""
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (f fenced) WrappedRoundTripper() http.RoundTripper { return f.next }

// held lets the body of req end only while the gate is open.
func (f fenced) held(req *http.Request) *http.Request {
	if req.Body == nil || req.Body == http.NoBody {
		return req
	}
	req.Body = heldBody{req.Body, f.gate, req.Context()}
	if again := req.GetBody; again != nil {
		req.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			return heldBody{body, f.gate, req.Context()}, err
		}
	}
	return req
}

// heldBody is the body of a request that fails once the gate is shut.
type heldBody struct {
	io.ReadCloser
	gate *Gate
	ctx  context.Context // of the request
}

// Read implements io.Reader. It checks the gate after the read, right before the bytes
// are sent.
func (b heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if _, late := b.gate.askIn(b.ctx); late != nil {
		return 0, late
	}
	return n, err
}

// answerBody is the body of an answer; closing it releases the request's context.
type answerBody struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b answerBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
