// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/simulate"
)

// Service is a stand-in for a service outside the cluster. It is the Transport of the
// program's http.Client: each call runs the handler in the bubble, and is part of the
// history. Calls other than GET, HEAD and OPTIONS are named like writes, by method and
// service, as in kit.Crash(time.Second).AfterWrite("POST dns", 1), and trigger faults
// of a swarm. Crash, Stop, Pause, Cut, LoseResponse, Reject and Repeat affect calls;
// other faults of the network affect only the connections to the API server.
type Service struct {
	w       *World
	name    string
	handler http.Handler
	made    func(*http.Request, int) string
}

// Service returns a stand-in of this name, such as "dns", with the state that the handler
// keeps for the run. made returns for which object a call has made something, such as
// the UID in the request, by the request and the code of its answer. Empty: it has made
// nothing. A Service that makes something for one object twice violates V25. Nil: that
// is not checked.
func (w *World) Service(name string, handler http.Handler, made func(r *http.Request, code int) (object string)) *Service {
	switch {
	case handler == nil:
		w.Fatalf("misuse: Service: the handler is nil; give an http.Handler that answers as the service does")
	case !nameOfProcess.MatchString(name):
		w.Fatalf("misuse: Service: a service cannot be named %q; use small letters, digits and dashes, such as dns", name)
	case !w.faults.services.add(name):
		w.Fatalf("misuse: Service: there is a service %q already; use a unique name", name)
	}
	return &Service{w: w, name: name, handler: handler, made: made}
}

// RoundTrip calls the service. The context of the request must be that of a reconcile or
// of another part of the program: it tells which process calls.
func (s *Service) RoundTrip(r *http.Request) (*http.Response, error) {
	p, ok := simhook.Of(r.Context()).(*process)
	if !ok {
		return nil, fmt.Errorf("call the service %s: the request has not the context of a reconcile, so the process that calls is not known; use http.NewRequestWithContext(ctx, …)", s.name)
	}
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	call := simulate.Request{
		Number: s.w.faults.services.number(), Client: p.name, Verb: r.Method, Kind: schema.GroupKind{Kind: s.name},
		Path: r.URL.Path, Query: r.URL.RawQuery,
	}
	what := "call " + r.Method + " " + s.name
	p.Step(r.Context(), what, r.URL.Path)
	if err := s.leaves(r.Context(), p, call); err != nil {
		return nil, err
	}
	answer, lost := s.carryOut(p, call, r, body)
	p.Step(r.Context(), "answer of "+what, r.URL.Path)
	switch err := r.Context().Err(); {
	case err != nil:
		return nil, err
	case lost || p.isDead():
		return nil, broken
	}
	return answer.response(r), nil
}

var broken = &net.OpError{Op: "read", Net: "simulated", Err: syscall.ECONNRESET}

// leaves fires the faults before the process sends a call, and returns why it is not
// sent, if so.
func (s *Service) leaves(ctx context.Context, p *process, call simulate.Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if calls(call.Verb) && breaks(s.w.faults.met(call, leaving)) {
		return broken
	}
	if p.isDead() {
		return broken
	}
	p.Step(ctx, "send call", call.Path)
	return ctx.Err()
}

// carryOut records a call that has arrived, and answers it. lost: its answer does not
// reach the process.
func (s *Service) carryOut(p *process, call simulate.Request, r *http.Request, body []byte) (a *recorded, lost bool) {
	rec, fired := s.w.record, []Op{}
	rec.under(1)
	defer rec.under(-1)
	asked := Event{
		What: Asked, Who: p.name, Name: call.Verb, Kind: s.name, Key: call.Path,
		Request: rec.nextNumber(), Text: pathText(call), Run: runText(r.Context()),
	}
	rec.add(asked)
	if calls(call.Verb) {
		fired = s.w.faults.met(call, arriving)
	}
	refused := slices.IndexFunc(fired, func(o Op) bool { return o.Verb == reject })
	if refused >= 0 {
		a = newRecorded()
		http.Error(a, "refused by a fault of the simulation", fired[refused].Code)
	} else {
		a = s.serve(r, body, asked)
		if slices.ContainsFunc(fired, func(o Op) bool { return o.Verb == repeat }) {
			a = s.serve(r, body, asked)
		}
	}
	lost = slices.ContainsFunc(fired, func(o Op) bool { return o.Verb == loseResponse })
	if calls(call.Verb) && breaks(s.w.faults.met(call, answering)) {
		lost = true
	}
	answered := Event{What: Answered, Who: p.name, Name: call.Verb, Kind: s.name, Key: call.Path, Request: asked.Request, Code: a.code, Run: asked.Run}
	if lost {
		answered.Code = 0
	}
	rec.add(answered)
	return a, lost
}

// serve runs the handler, and records what it has made.
func (s *Service) serve(r *http.Request, body []byte, asked Event) *recorded {
	given := func() *http.Request {
		r := r.Clone(r.Context())
		r.Body, r.RequestURI = io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI()
		return r
	}
	a := newRecorded()
	s.handler.ServeHTTP(a, given())
	a.code = cmp.Or(a.code, http.StatusOK)
	if s.made != nil {
		if object := s.made(given(), a.code); object != "" {
			s.w.record.add(Event{What: Made, Who: asked.Who, Kind: s.name, Key: object, Request: asked.Request, Run: asked.Run})
		}
	}
	s.w.checks.wake()
	return a
}

func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// recorded is the answer of a handler.
type recorded struct {
	header, sent http.Header
	code         int
	body         bytes.Buffer
}

func newRecorded() *recorded { return &recorded{header: http.Header{}} }

// Header returns the header that the handler may change until it writes.
func (a *recorded) Header() http.Header { return a.header }

// WriteHeader takes the code of the first call.
func (a *recorded) WriteHeader(code int) {
	if a.code == 0 && code >= http.StatusOK {
		a.code, a.sent = code, maps.Clone(a.header)
	}
}

// Write adds to the body.
func (a *recorded) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

func (a *recorded) response(r *http.Request) *http.Response {
	header := a.sent
	if header == nil {
		header = a.header
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.code, http.StatusText(a.code)), StatusCode: a.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r,
	}
}
