// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/kube"
)

const (
	defaultLimit = 256 << 20
	leastLimit   = 1 << 20
	mostWaiting  = 64 << 20 // bytes of entries that wait to be written
	ofEntry      = 512      // bytes that each counts
)

// Options of a Window.
type Options struct {
	// Limit is the size, in bytes before compression, at which the Window ends. 0: 256 MiB.
	Limit int64
	// Redact are further fields to hide, as "Kind.group:path.to.field", such as
	// "ConfigMap:data" or "Website.web.example.com:spec.password". A resource may stand for the kind.
	// Bodies that do not name their kind match by the resource, whose name is a plural of the kind's
	// that is regular in English; for any other, give both.
	Redact []string
	// Yields makes the Window end when another is opened that does not yield.
	Yields bool
	// Decode returns a body as JSON values, whatever its content type.
	Decode func(contentType string, body []byte) (any, error)
}

// Window records until it is closed. Its methods do not block. Safe for concurrent use.
type Window struct {
	began    time.Time
	limit    int64
	hidden   Redaction
	redact   []string
	decode   func(contentType string, body []byte) (any, error)
	recorder *Recorder
	yields   bool
	wake     chan struct{}
	closed   chan struct{} // closed when another can be opened
	mu       struct {
		sync.Mutex
		queue     []waiting
		bytes     int64
		over      string // why nothing more is taken; empty: it is
		full      bool   // it ended by its limit
		informers int
		runs      int
	}
}

// waiting is an entry that is not written yet.
type waiting struct {
	Entry
	bytes int64
	fill  func(*Window, *Entry) // what takes time; nil: nothing
	all   iter.Seq[kube.Object] // entries of one object each follow; nil: none
	kind  schema.GroupVersionKind
}

func newWindow(opts Options) (*Window, error) {
	if opts.Limit != 0 && opts.Limit < leastLimit {
		return nil, fmt.Errorf("the limit of a recording is %d bytes; give at least %d, or 0 for %d", opts.Limit, leastLimit, defaultLimit)
	}
	hidden, err := ParseRedaction(opts.Redact)
	if err != nil {
		return nil, err
	}
	w := &Window{
		began: time.Now(), limit: cmp.Or(opts.Limit, defaultLimit), hidden: hidden, redact: opts.Redact, decode: opts.Decode,
		yields: opts.Yields, wake: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	return w, nil
}

// put adds an entry at the present time. It is dropped if the Window is over.
func (w *Window) put(e waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.putLocked(e)
}

func (w *Window) putLocked(e waiting) {
	if w.mu.over != "" {
		return
	}
	e.bytes += ofEntry
	if w.mu.bytes += e.bytes; w.mu.bytes > mostWaiting && len(w.mu.queue) > 0 {
		w.overLocked(fmt.Sprintf("what waits to be written has reached %d MiB: the reader is too slow", mostWaiting>>20))
		return
	}
	e.At = time.Since(w.began)
	w.mu.queue = append(w.mu.queue, e)
	w.wakeUp()
}

func (w *Window) overLocked(reason string) {
	if w.mu.over == "" {
		w.mu.over = reason
	}
	w.wakeUp()
}

// end lets nothing more be taken.
func (w *Window) end(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.overLocked(reason)
}

// isFull reports whether it ended by its limit.
func (w *Window) isFull() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.full
}

func (w *Window) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// InformerLog is what an informer writes to. Not safe for concurrent use.
type InformerLog struct {
	w        *Window
	informer int
	of       Source
}

// Source describes an informer.
type Source struct {
	Kind       schema.GroupVersionKind
	Resource   string // empty: discovery has not answered yet
	Namespaced bool
	Metadata   bool   // it has the metadata of objects alone
	Version    string // up to which its state is complete
}

// Informer begins the state of an informer: objects are read later, by another goroutine, and must
// not change meanwhile.
func (w *Window) Informer(s Source, objects iter.Seq[kube.Object]) *InformerLog {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.informers++
	l := &InformerLog{w, w.mu.informers, s}
	w.putLocked(waiting{Entry: l.entry(), all: objects, kind: s.Kind})
	return l
}

func (l *InformerLog) entry() Entry {
	return Entry{
		What: Informer, Informer: l.informer, Kind: l.of.Kind, Resource: l.of.Resource, Namespaced: l.of.Namespaced,
		Metadata: l.of.Metadata, Version: l.of.Version,
	}
}

// Learned writes what discovery has answered since the informer's state was written.
func (l *InformerLog) Learned(s Source) {
	if l.of.Resource == "" && s.Resource != "" {
		l.of = s
		l.w.put(waiting{Entry: l.entry()})
	}
}

// Event writes a change. open returns the object, which is shared and not modified, later and to
// another goroutine; bytes is about its size.
func (l *InformerLog) Event(kind string, open func() (kube.Object, error), version string, bytes int64) {
	of := l.of // Learned changes it
	l.w.put(waiting{
		Entry: Entry{What: Event, Informer: l.informer, Type: kind, Version: version}, bytes: bytes,
		fill: func(w *Window, e *Entry) {
			if obj, err := open(); err == nil { // else it is corrupt
				e.Object = w.object(of.Kind, of.Resource, obj, e.Version)
			}
		},
	})
}

// Bookmark writes that all up to a version has come.
func (l *InformerLog) Bookmark(version string) {
	l.w.put(waiting{Entry: Entry{What: Event, Informer: l.informer, Type: "BOOKMARK", Version: version}})
}

// Run is a reconcile that is recorded. A nil Run records nothing.
type Run struct {
	w      *Window
	number int
	mu     struct {
		sync.Mutex
		requests int
		refused  bool // a request about hidden content failed, and the reconcile's error may repeat it
	}
}

// Begin records that a reconcile begins.
func (w *Window) Begin(controller, key, causes string) *Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.runs++
	r := &Run{w: w, number: w.mu.runs}
	w.putLocked(waiting{Entry: Entry{What: Begin, Run: r.number, Controller: controller, Key: key, Causes: redact.Text(causes)}, bytes: int64(len(causes))})
	return r
}

// End records how a reconcile ended, and after which time it asked to run again.
func (r *Run) End(outcome string, after time.Duration, err string) {
	r.mu.Lock()
	if err = redact.Text(err); err != "" && r.mu.refused {
		err = redact.Hidden
	}
	r.mu.Unlock()
	r.w.put(waiting{Entry: Entry{What: Done, Run: r.number, Outcome: outcome, After: after, Error: err}, bytes: int64(len(err))})
}

// Clock records the time that a reconcile was given.
func (r *Run) Clock(t time.Time) {
	if r != nil {
		r.w.put(waiting{Entry: Entry{What: Clock, Run: r.number, Time: t}})
	}
}

// Chance records a draw.
func (r *Run) Chance(f float64) {
	if r != nil {
		r.w.put(waiting{Entry: Entry{What: Chance, Run: r.number, Chance: f}})
	}
}

// Content is a body as it was sent or read.
type Content struct {
	// Resource and Subresource that the path names; Resource may be empty.
	Resource    schema.GroupResource
	Subresource string
	Type        string // as the header Content-Type has it
	Data        []byte
	Missing     string // why Data is not the body; empty: it is
}

// Request records a request before it is sent, and returns its number for Answer. path has the
// query.
func (r *Run) Request(method, path string, body Content) (number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.requests++
	e := Entry{What: Request, Run: r.number, Number: r.mu.requests, Method: method, Path: path}
	if method == http.MethodPatch {
		e.Type, _, _ = strings.Cut(body.Type, ";")
	}
	r.w.put(waiting{Entry: e, bytes: int64(len(body.Data)), fill: func(w *Window, e *Entry) { e.Body = w.body(body) }})
	return r.mu.requests
}

// Answer records the answer to a request when its body has been read. code 0: none came, because of
// err. retryAfter is the header.
func (r *Run) Answer(number, code int, retryAfter string, body Content, err error) {
	e := Entry{What: Answer, Run: r.number, Number: number, Code: code, RetryAfter: retryAfter}
	covered := (err != nil || isTelling(code)) && r.w.hidden.covers(body.Resource, body.Subresource)
	if covered {
		r.mu.Lock()
		r.mu.refused = true
		r.mu.Unlock()
	}
	if err != nil {
		if e.Error = redact.Text(err.Error()); covered {
			e.Error = redact.Hidden
		}
	}
	r.w.put(waiting{Entry: e, bytes: int64(len(body.Data)), fill: func(w *Window, e *Entry) { e.Body = w.body(body) }})
}

// isTelling reports whether an answer is an error that may repeat more than names.
func isTelling(code int) bool {
	return code >= http.StatusBadRequest && code != http.StatusNotFound && code != http.StatusConflict
}
