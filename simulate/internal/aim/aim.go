// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package aim makes faults happen at chosen requests to a simulated server, in real time.
//
//	[]Fault ──▶ Control ◀── Tracer: Asked, Answering ── server ◀── requests of the program
//	              │
//	              └──▶ faults of the server, or of the Process: it ends, stands still, starts again
//
// # Concurrency
//
// A Control is a simulate.Tracer and safe for concurrent use. A request waits until the fault that it triggers
// has begun. Close waits for all faults to end.
package aim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate"
)

// The faults.
const (
	Crash        = "crash"         // the process is killed, and starts again after For
	TimeTravel   = "time travel"   // the same, and the server lags Amount revisions behind for a while
	Pause        = "pause"         // the process stands still for For
	LoseResponse = "lose response" // the write is carried out, and the connection breaks
	Reject       = "reject"        // the write is answered with Code
	ForeignWrite = "foreign write" // another client annotates the object, or one of Kind
	Slow         = "slow"          // changes of Kind are not seen for For
	Lag          = "lag"           // no change is seen for For
	Coalesce     = "coalesce"      // the next two changes of one object of Kind are seen as one
	Cut          = "cut"           // all watches end
	RestartCache = "restart cache" // the same, and older versions are forgotten: clients get 410 and list again
	Delay        = "delay"         // the write waits for For
)

// Fault is one fault, and when it happens.
type Fault struct {
	Fault string `json:"fault"`
	// Kind that it affects, such as "Pod" or "Deployment.apps". Empty: that of the request.
	Kind   string   `json:"kind,omitempty"`
	For    Duration `json:"for,omitempty"`
	Amount int64    `json:"amount,omitempty"`
	Code   int      `json:"code,omitempty"`
	// Before and After are writes, such as "create Pod", "update Pod/status" or "*": the fault happens before
	// the Nth is carried out, or after that and before it is answered. Nth counts from 1; 0 is 1.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Nth    int    `json:"nth,omitempty"`
	// User: writes of the user count, and not those of the program.
	User bool `json:"user,omitempty"`
	// At is how long after that it happens. Without Before and After it counts from when the fault was given.
	At Duration `json:"at,omitempty"`
}

// Duration is one that is text in JSON, such as "1.5s".
type Duration time.Duration

func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

func (d *Duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("%s is not a duration; write text, such as \"1.5s\"", text)
	}
	parsed, err := time.ParseDuration(s)
	*d = Duration(parsed)
	return err
}

// String describes a fault.
func (f Fault) String() string {
	text := f.Fault
	if f.Kind != "" {
		text += " " + f.Kind
	}
	if f.For > 0 {
		text += " for " + time.Duration(f.For).String()
	}
	whose, later := "", ""
	if f.User {
		whose = " of the user"
	}
	if f.At > 0 {
		later = ", " + time.Duration(f.At).String() + " later"
	}
	switch {
	case f.Before != "":
		return fmt.Sprintf("%s before write %d of %s%s%s", text, max(f.Nth, 1), f.Before, whose, later)
	case f.After != "":
		return fmt.Sprintf("%s after write %d of %s%s%s", text, max(f.Nth, 1), f.After, whose, later)
	}
	return text + " at " + time.Duration(f.At).String()
}

// ofProcess are the faults of a Process.
var ofProcess = []string{Crash, TimeTravel, Pause}

// Check returns what is wrong with a fault.
func (f Fault) Check() error { return f.check(ofProcess) }

// check is Check where the faults of the process are those given.
func (f Fault) check(process []string) error {
	known := slices.Concat(process, []string{LoseResponse, Reject, ForeignWrite, Slow, Lag, Coalesce, Cut, RestartCache, Delay})
	if !slices.Contains(known, f.Fault) {
		return fmt.Errorf("the fault %q is not known; write one of %s", f.Fault, strings.Join(known, ", "))
	}
	byWrite, is := f.Before+f.After != "", func(faults ...string) bool { return slices.Contains(faults, f.Fault) }
	for _, rule := range []struct {
		broken bool
		text   string
	}{
		{f.Before != "" && f.After != "", "has before and after; give one"},
		{min(int64(f.Nth), f.Amount, int64(f.For), int64(f.At)) < 0, "has a negative number"},
		{is(TimeTravel) && f.Amount == 0, "has no amount; give the number of revisions that the server lags behind"},
		{is(Slow, Coalesce) && f.Kind == "" && !byWrite, "has neither a kind nor a write"},
		{is(Slow, Lag, Delay) && f.For == 0, "has no duration; give for, such as \"2s\""},
		{is(LoseResponse, Reject, Delay) && (!byWrite || f.At > 0), "needs a write; give before, and no at"},
		{is(Reject) && !slices.Contains([]int{0, 429, 500, 503}, f.Code), "needs the code 429, 500 or 503"},
	} {
		if rule.broken {
			return fmt.Errorf("the fault %s %s", f.Fault, rule.text)
		}
	}
	return nil
}

// Process is the program under test.
type Process interface {
	// Kill ends it at once, and starts it again after down.
	Kill(down time.Duration)
	// Pause lets it stand still.
	Pause(d time.Duration)
}

// behind is how long the server of a process that was restarted lags.
const behind = 5 * time.Second

// Control makes faults happen.
type Control struct {
	next    simulate.Tracer // may be nil
	process Process         // nil: there is none
	happens func(f Fault)
	work    sync.WaitGroup
	mu      struct {
		sync.Mutex
		server *simulate.Server // nil: nothing happens yet
		open   []*armed
		done   []Fault  // that have begun
		timed  []*armed // that wait for a time
		lags   map[schema.GroupResource]*lag
		ctx    context.Context // of the faults that wait or last
		end    context.CancelFunc
		closed bool
	}
}

// lag is one of the server. Faults that overlap share it.
type lag struct {
	faults int
	to     int64
}

// everything stands for all resources.
var everything = schema.GroupResource{Resource: "*"}

type armed struct {
	Fault
	met int
}

// New returns a Control that passes all calls on to next, which may be nil. happens is called when a fault begins;
// it may be nil, as may process.
func New(next simulate.Tracer, process Process, happens func(Fault)) *Control {
	c := &Control{next: next, process: process, happens: happens}
	c.mu.ctx, c.mu.end = context.WithCancel(context.Background())
	c.mu.lags = map[schema.GroupResource]*lag{}
	return c
}

// Begin lets faults happen in a server whose Tracer the Control is.
func (c *Control) Begin(s *simulate.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.server = s
}

// Arm adds faults. It returns an error, and adds none, if one of them is wrong.
func (c *Control) Arm(faults ...Fault) error {
	process := ofProcess
	if c.process == nil {
		process = nil
	}
	for _, f := range faults {
		if c.process == nil && slices.Contains(ofProcess, f.Fault) {
			return fmt.Errorf("%s needs a process that this server has started", f.Fault)
		}
		if err := f.check(process); err != nil {
			return err
		}
	}
	for _, f := range faults {
		if f.Before == "" && f.After == "" {
			c.fireLater(f, nil)
			continue
		}
		c.mu.Lock()
		if !c.mu.closed {
			c.mu.open = append(c.mu.open, &armed{Fault: f})
		}
		c.mu.Unlock()
	}
	return nil
}

// fireLater makes a fault happen after its time. r is the write that it follows; nil: none.
func (c *Control) fireLater(f Fault, r *simulate.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return
	}
	ctx, waits := c.mu.ctx, &armed{Fault: f}
	c.mu.timed = append(c.mu.timed, waits)
	c.work.Go(func() {
		if rest(ctx, time.Duration(f.At)) {
			c.fire(f, r)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mu.timed = slices.DeleteFunc(c.mu.timed, func(a *armed) bool { return a == waits })
	})
}

// Timed reports whether faults wait for a time.
func (c *Control) Timed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.timed) > 0
}

// Happened returns the faults that have begun.
func (c *Control) Happened() []Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Fault{}, c.mu.done...)
}

// Open returns the faults that wait for their writes or times.
func (c *Control) Open() []Fault {
	out := []Fault{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range slices.Concat(c.mu.open, c.mu.timed) {
		out = append(out, a.Fault)
	}
	return out
}

// Close ends all faults.
func (c *Control) Close() {
	c.clear(true)
	c.work.Wait()
	c.heal()
}

// disarm forgets the faults that wait, and ends those of the server.
func (c *Control) disarm() {
	c.clear(false)
	c.heal()
}

// clear forgets the faults that wait, and lets go of those that last.
func (c *Control) clear(last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.end()
	c.mu.ctx, c.mu.end = context.WithCancel(context.Background())
	c.mu.open, c.mu.timed, c.mu.lags = nil, nil, map[schema.GroupResource]*lag{}
	c.mu.closed = c.mu.closed || last
}

func (c *Control) heal() {
	if s := c.server(); s != nil {
		s.Heal()
	}
}

func (c *Control) server() *simulate.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.server
}

// rest waits, and reports whether ctx has not ended.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// met fires the faults whose write r is.
func (c *Control) met(r simulate.Request, after bool) {
	if !r.Writes() || c.server() == nil {
		return
	}
	var due []Fault
	c.mu.Lock()
	c.mu.open = slices.DeleteFunc(c.mu.open, func(a *armed) bool {
		named := a.Before
		if after {
			named = a.After
		}
		if named == "" || a.User != (r.Client == "user") || !Names(named, r) {
			return false
		}
		if a.met++; a.met < max(a.Nth, 1) {
			return false
		}
		due = append(due, a.Fault)
		return true
	})
	c.mu.Unlock()
	for _, f := range due {
		if f.At > 0 {
			c.fireLater(f, &r)
		} else {
			c.fire(f, &r)
		}
	}
}

// Names reports whether a text such as "create Pod" names the request.
func Names(named string, r simulate.Request) bool {
	if verb, rest, ok := strings.Cut(named, " "); ok {
		if verb != r.Verb {
			return false
		}
		named = rest
	}
	kind, sub, _ := strings.Cut(named, "/")
	return kind == "*" || OfKind(r.Kind, kind) && sub == r.Subresource
}

// KeyText returns a key as people write it: the name of an object without a namespace has no slash.
func KeyText(key types.NamespacedName) string { return strings.TrimPrefix(key.String(), "/") }

// OfKind reports whether named is the kind, with or without its group.
func OfKind(kind schema.GroupKind, named string) bool {
	return named == kind.Kind || named == kind.String()
}

// fire makes a fault happen. r is the write that triggers it; nil: none.
func (c *Control) fire(f Fault, r *simulate.Request) {
	s := c.server()
	if s == nil {
		return
	}
	c.mu.Lock()
	c.mu.done = append(c.mu.done, f)
	ctx := c.mu.ctx
	c.mu.Unlock()
	if c.happens != nil {
		c.happens(f)
	}
	resource := c.resource(s, f, r)
	switch f.Fault {
	case Crash:
		c.process.Kill(time.Duration(f.For))
	case TimeTravel:
		c.lag(everything, max(s.Revision()-f.Amount, 1), time.Duration(f.For)+behind, s.LagTo, s.CatchUp)
		c.process.Kill(time.Duration(f.For))
	case Pause:
		c.process.Pause(time.Duration(f.For))
	case LoseResponse:
		s.LoseResponseTo(*r)
	case Reject:
		code := f.Code
		if code == 0 {
			code = 500
		}
		s.RefuseRequest(*r, code, 1)
	case ForeignWrite:
		c.annotate(s, resource, r)
	case Slow:
		c.lag(resource, s.Revision(), time.Duration(f.For), func(to int64) { s.LagKindTo(resource, to) }, func() { s.CatchUpKind(resource) })
	case Lag:
		c.lag(everything, s.Revision(), time.Duration(f.For), s.LagTo, s.CatchUp)
	case Coalesce:
		s.Coalesce(resource)
	case Cut:
		closeAll(s)
	case RestartCache:
		s.RestartCache()
	case Delay:
		rest(ctx, time.Duration(f.For))
	}
}

// lag lets resources lag behind, until the last of the faults that overlap is over.
func (c *Control) lag(of schema.GroupResource, to int64, d time.Duration, begin func(to int64), over func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return
	}
	l := c.mu.lags[of]
	if l == nil {
		l = &lag{to: to}
		c.mu.lags[of] = l
	}
	l.faults++
	l.to = min(l.to, to)
	begin(l.to)
	ctx := c.mu.ctx
	c.work.Go(func() {
		rest(ctx, d)
		c.mu.Lock()
		defer c.mu.Unlock()
		if l.faults--; l.faults == 0 && c.mu.lags[of] == l {
			delete(c.mu.lags, of)
			over()
		}
	})
}

func closeAll(s *simulate.Server) {
	for _, watched := range s.Watched() {
		s.CloseWatches(watched)
	}
}

// resource returns that of the fault's kind, or of the request.
func (c *Control) resource(s *simulate.Server, f Fault, r *simulate.Request) schema.GroupResource {
	if r != nil && (f.Kind == "" || OfKind(r.Kind, f.Kind)) {
		return r.Resource
	}
	for _, watched := range s.Watched() {
		if OfKind(s.KindOf(watched), f.Kind) {
			return watched
		}
	}
	return schema.GroupResource{}
}

// annotate writes an annotation as another client would: to the object of the request, or to the first of the
// resource.
func (c *Control) annotate(s *simulate.Server, of schema.GroupResource, r *simulate.Request) {
	var key types.NamespacedName
	if r != nil && r.Resource == of && r.Key.Name != "" {
		key = r.Key
	} else if all := s.Objects(of); len(all) > 0 {
		key = kube.KeyOf(all[0])
	}
	text := fmt.Sprint(s.Revision())
	_ = s.Change(of, key, func(m metav1.Object) { // a missing object needs none
		annotations := m.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[Annotation] = text
		m.SetAnnotations(annotations)
	})
}

// Annotation is what ForeignWrite sets.
const Annotation = "kit.flyball.dev/foreign-write"
