// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/simulate"
)

const (
	patience = 10 * time.Second // of virtual time, with what should have happened by now
	starting = 10 * time.Minute // until the controllers run
	instant  = time.Microsecond // between two entries
)

// name of a reconcile while it runs.
type name struct{ controller, key string }

func (n name) String() string { return fmt.Sprintf("controller %q, key %s", n.controller, n.key) }

// player replays a recording: it answers requests, and is the simhook.Replay of the program. Safe for
// concurrent use.
type player struct {
	bundle    *recording.Bundle
	scheme    *runtime.Scheme
	server    http.RoundTripper // for whatever the recording does not have
	inbound   *simulate.Network // for the program's own servers
	informers informers
	mu        struct {
		sync.Mutex
		began   time.Time              // of the log, in virtual time
		next    map[string]chan string // by controller
		current map[name]*run
		unknown error
	}
	runs map[int]*run // of the recording; used only by play
}

// run is a reconcile of the recording and, once it has begun, of the replay. The player's lock guards
// it.
type run struct {
	name
	began    time.Duration
	causes   string
	requests []*recording.Entry
	clocks   []time.Time
	chances  []float64

	sent    int // requests of the recording that the replay has sent, too
	pending []*call
	matched map[int]*call
	over    map[int]bool // requests of the recording that need no further look
	ended   bool
	outcome string
	after   time.Duration
	err     string
}

// call is a request of the replay that waits for its answer.
type call struct {
	method, path string
	patch        string // the media type
	body         []byte // as JSON
	missing      string // why not
	answered     chan *recording.Entry
}

var (
	_ simhook.Hooks  = (*player)(nil)
	_ simhook.Replay = (*player)(nil)
)

func newPlayer(b *recording.Bundle, scheme *runtime.Scheme, server http.RoundTripper) *player {
	p := &player{bundle: b, scheme: scheme, server: server, inbound: simulate.NewNetwork(), runs: map[int]*run{}}
	p.mu.began, p.mu.next, p.mu.current = time.Now(), map[string]chan string{}, map[name]*run{}
	for i := range b.Entries {
		e := &b.Entries[i]
		switch r := p.runs[e.Run]; {
		case e.What == recording.Begin:
			p.runs[e.Run] = &run{name: name{e.Controller, e.Key}, began: e.At, causes: e.Causes, matched: map[int]*call{}, over: map[int]bool{}}
		case r == nil:
		case e.What == recording.Request:
			r.requests = append(r.requests, e)
		case e.What == recording.Clock:
			r.clocks = append(r.clocks, e.Time)
		case e.What == recording.Chance:
			r.chances = append(r.chances, e.Chance)
		}
	}
	return p
}

// controllers returns those of the recording, in order.
func (p *player) controllers() []string {
	found := map[string]bool{}
	for _, r := range p.runs {
		found[r.controller] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// Step implements simhook.Hooks: the order of entries decides.
func (p *player) Step(context.Context, string, string) {}

// Instant implements simhook.Hooks.
func (p *player) Instant(at time.Time) time.Time { return at }

// Wall implements simhook.Hooks.
func (p *player) Wall() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wallLocked()
}

func (p *player) wallLocked() time.Time { return p.bundle.Began.Add(time.Since(p.mu.began)).Round(0) }

// Stands implements simhook.Hooks.
func (p *player) Stands() bool { return false }

// Random implements simhook.Hooks: what no reconcile draws decides no request of one.
func (p *player) Random(string) float64 { return 0.5 }

// Reconcile implements simhook.Hooks.
func (p *player) Reconcile(context.Context, string, string) {}

// Listen implements simhook.Hooks.
func (p *player) Listen(context.Context, string) (net.Listener, error) {
	return p.inbound.Listener(), nil
}

// Note implements simhook.Hooks.
func (p *player) Note(n simhook.Note) {
	if n.What != simhook.Ended {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.mu.current[name{n.Kind, n.Key}]; r != nil {
		r.ended, r.outcome, r.after, r.err = true, n.Name, n.After, n.Text
		delete(p.mu.current, r.name)
	}
}

func (p *player) waiting(controller string) chan string {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.mu.next[controller]
	if c == nil {
		c = make(chan string)
		p.mu.next[controller] = c
	}
	return c
}

// Next implements simhook.Replay.
func (p *player) Next(ctx context.Context, controller string) (key string, ok bool) {
	select {
	case key = <-p.waiting(controller):
		return key, true
	case <-ctx.Done():
		return "", false
	}
}

// Unknown implements simhook.Replay.
func (p *player) Unknown(controller, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.unknown = fmt.Errorf("%v: the recorded program reconciled it, and in the replay no source has called for it", name{controller, key})
}

// Clock implements simhook.Replay.
func (p *player) Clock(controller, key string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.mu.current[name{controller, key}]; r != nil && len(r.clocks) > 0 {
		first := r.clocks[0]
		r.clocks = r.clocks[1:]
		return first
	}
	return p.wallLocked()
}

// Chance implements simhook.Replay.
func (p *player) Chance(controller, key string) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.mu.current[name{controller, key}]; r != nil && len(r.chances) > 0 {
		first := r.chances[0]
		r.chances = r.chances[1:]
		return first
	}
	return 0.5
}

// RoundTrip implements http.RoundTripper.
func (p *player) RoundTrip(req *http.Request) (*http.Response, error) {
	if task := contextvalues.TaskOf(req.Context()); task != nil && effects.Replayed(req, "") {
		controller, key := task.Name()
		p.mu.Lock()
		r := p.mu.current[name{controller, key}]
		p.mu.Unlock()
		if r != nil {
			return p.send(req, r)
		}
	} else if resp := p.informers.answer(req); resp != nil {
		resp.Request = req
		return resp, nil
	}
	return p.server.RoundTrip(req)
}

// send is a request of a reconcile: it is answered when the recording comes to its answer.
func (p *player) send(req *http.Request, r *run) (*http.Response, error) {
	content, err := effects.ContentOf(req, "")
	if err != nil {
		return nil, err
	}
	c := &call{method: req.Method, path: effects.PathOf(req, ""), missing: content.Missing, answered: make(chan *recording.Entry, 1)}
	if req.Method == http.MethodPatch {
		c.patch, _, _ = strings.Cut(content.Type, ";")
	}
	if len(content.Data) > 0 {
		tree, err := effects.Tree(p.scheme, content.Type, content.Data)
		if err != nil {
			c.missing = fmt.Sprintf("its %d bytes of %q are not known to be JSON", len(content.Data), content.Type)
		} else {
			c.body = recording.Hide(p.bundle.Redact, content.Resource, content.Subresource, tree)
		}
	}
	p.mu.Lock()
	r.pending = append(r.pending, c)
	p.mu.Unlock()
	select {
	case e := <-c.answered:
		if e.Code == 0 {
			return nil, errors.New(e.Error)
		}
		resp := response(e.Code, "application/json", e.Body.JSON)
		resp.Request = req
		if e.RetryAfter != "" {
			resp.Header.Set("Retry-After", e.RetryAfter)
		}
		return resp, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// CloseIdleConnections closes those to the simulated server.
func (p *player) CloseIdleConnections() {
	if c, ok := p.server.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Result is what a replay did.
type Result struct {
	Events, Reconciles, Requests int
	Took                         time.Duration // of virtual time
}

// play goes through the log. ended is closed when the program has ended.
func (p *player) play(ctx context.Context, ended <-chan struct{}) (r Result, err error) {
	began := time.Now()
	p.mu.Lock()
	p.mu.began = began
	p.mu.Unlock()
	for i := range p.bundle.Entries {
		e := &p.bundle.Entries[i]
		if err := p.rest(ctx, ended, began.Add(e.At)); err != nil {
			return r, err
		}
		switch err = p.entry(ctx, ended, e); e.What {
		case recording.Event:
			r.Events++
		case recording.Begin:
			r.Reconciles++
		case recording.Request:
			r.Requests++
		}
		if r.Took = e.At; err != nil {
			return r, err
		}
	}
	return r, nil
}

// rest waits until at, and until everything that is due has happened.
func (p *player) rest(ctx context.Context, ended <-chan struct{}, at time.Time) error {
	select {
	case <-time.After(max(time.Until(at), instant)):
	case <-ended:
		return errors.New("the program has ended by itself")
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.unknown
}

func (p *player) entry(ctx context.Context, ended <-chan struct{}, e *recording.Entry) error {
	switch e.What {
	case recording.Informer:
		return nil // it is there from the start
	case recording.Object:
		return p.informers.late(*e)
	case recording.Event:
		return p.informers.take(*e)
	case recording.Begin:
		p.informers.begun = true
		return p.begin(ctx, p.runs[e.Run])
	}
	r := p.runs[e.Run]
	if r == nil || e.What == recording.Clock || e.What == recording.Chance {
		return nil // it began before the recording; or it is taken when the replay asks
	}
	check := map[recording.What]func(*run, *recording.Entry) error{
		recording.Request: p.sent, recording.Answer: p.answer, recording.Done: p.done,
	}[e.What]
	if check == nil {
		return fmt.Errorf("an entry is %q, which this version of Flyball does not know", e.What)
	}
	// The replay may wait for a moment of its own.
	var err error
	for waited := time.Duration(0); ; waited += patience / 100 {
		err = check(r, e)
		early, is := errors.AsType[notYet](err)
		if !is {
			break
		}
		if err = early.error; waited > patience {
			break
		}
		if err := p.rest(ctx, ended, time.Now().Add(patience/100)); err != nil {
			return err
		}
	}
	return err
}

// begin lets a worker reconcile the key of r.
func (p *player) begin(ctx context.Context, r *run) error {
	p.mu.Lock()
	p.mu.current[r.name] = r
	p.mu.Unlock()
	select {
	case p.waiting(r.controller) <- r.key:
		return nil
	case <-time.After(patience):
		return p.differs(r, "the recorded program began to reconcile", "no worker of the controller is free: it has fewer workers than the recorded program had, or a reconcile did not end")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// notYet is a difference that may end.
type notYet struct{ error }

// sent compares a request with what the replay has sent.
func (p *player) sent(r *run, e *recording.Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range r.pending {
		if c.is(e) {
			r.pending = slices.Delete(r.pending, i, i+1)
			r.matched[e.Number] = c
			r.passed(e)
			return nil
		}
	}
	for _, c := range r.pending {
		if c.method == e.Method && c.path == e.Path {
			return p.differs(r, "sent\n"+requestText(e.Method, e.Path, e.Body.JSON, e.Body.Missing), c.against(e))
		}
	}
	if strings.HasPrefix(e.Type, recording.Apply) && p.informers.unchanged(e.Path, e.Body.JSON) != nil {
		r.passed(e)
		return nil // the replay has omitted it
	}
	if p.omittedLocked(r) {
		return notYet{p.differs(r, "sent\n"+requestText(e.Method, e.Path, e.Body.JSON, e.Body.Missing), "has sent nothing of the kind")}
	}
	was := "sent\n" + requestText(e.Method, e.Path, e.Body.JSON, e.Body.Missing)
	switch {
	case len(r.pending) > 0:
		return p.differs(r, was, r.pending[0].against(e))
	case r.ended:
		return p.differs(r, was, "has ended, as "+outcomeText(r.outcome, r.err))
	}
	return notYet{p.differs(r, was, "has sent nothing; it waits for something that the recording does not have")}
}

// against says what c is, beside the recorded e.
func (c *call) against(e *recording.Entry) string {
	is := "sends\n" + requestText(c.method, c.path, c.body, c.missing)
	if c.method != e.Method || c.path != e.Path {
		return is
	}
	if c.patch != e.Type {
		return is + fmt.Sprintf("\nwhich is of the type %q, and the recorded one of %q", c.patch, e.Type)
	}
	return is + "\nwhich differs in\n" + differences(e.Body.JSON, c.body)
}

// passed records that e is over.
func (r *run) passed(e *recording.Entry) {
	r.sent++
	r.over[e.Number] = true
}

func (c *call) is(e *recording.Entry) bool {
	if c.method != e.Method || c.path != e.Path || c.patch != e.Type {
		return false
	}
	return c.missing == "" && e.Body.Missing == "" && differences(e.Body.JSON, c.body) == "" ||
		c.missing != "" && c.missing == e.Body.Missing
}

// answer gives the replay the recorded answer.
func (p *player) answer(r *run, e *recording.Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := r.matched[e.Number]
	if c == nil {
		return nil // its request was sent before
	}
	if e.Body.Missing != "" && !strings.Contains(e.Body.Missing, "stream") {
		return fmt.Errorf("%v: the recording does not have the answer to %s %s: %s", r.name, c.method, c.path, e.Body.Missing)
	}
	delete(r.matched, e.Number)
	c.answered <- e
	return nil
}

// done compares how a reconcile ended.
func (p *player) done(r *run, e *recording.Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := "ended, as " + outcomeText(e.Outcome, e.Error)
	if p.omittedLocked(r) {
		return notYet{p.differs(r, was, "has not ended")}
	}
	switch {
	case len(r.pending) > 0:
		c := r.pending[0]
		return p.differs(r, was, "sends\n"+requestText(c.method, c.path, c.body, c.missing))
	case !r.ended:
		return notYet{p.differs(r, was, "has not ended; it waits for something that the recording does not have")}
	case r.outcome != e.Outcome:
		return p.differs(r, was, "has ended, as "+outcomeText(r.outcome, r.err))
	case (r.after - e.After).Abs() > time.Second+e.After/100: // some take it from the clock of the machine
		return p.differs(r, fmt.Sprintf("asked to run again after %v", e.After), fmt.Sprintf("asks for %v", r.after))
	}
	return nil
}
