// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// ErrOpen is returned by Recorder.Open while another Window is open.
var ErrOpen = errors.New("a recording is being made already; wait until it has ended")

// ErrStopped is returned by Recorder.Open after Stop.
var ErrStopped = errors.New("the program stops")

// Recorder is where the parts of a program find the Window that is open, if there is one. The zero
// Recorder is ready to use. Safe for concurrent use.
type Recorder struct {
	open atomic.Pointer[Window]
	mu   struct {
		sync.Mutex
		window  *Window // that the informers write to; set before open
		stopped bool
		parts   map[*part]struct{}
	}
}

// part is an informer: see Join.
type part struct{ record func(*Window) }

// Window returns the one that is open; nil: there is none.
func (r *Recorder) Window() *Window {
	if r == nil {
		return nil
	}
	return r.open.Load()
}

// Join calls record for each Window that opens, and for the one that is open: record writes the
// present state of an informer to it and from then on its events. It is called with nil when the
// Window has closed. No two calls overlap, and none follows leave.
func (r *Recorder) Join(record func(*Window)) (leave func()) {
	if r == nil {
		return func() {}
	}
	p := &part{record}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.parts == nil {
		r.mu.parts = make(map[*part]struct{})
	}
	r.mu.parts[p] = struct{}{}
	if r.mu.window != nil {
		record(r.mu.window)
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.mu.parts, p)
	}
}

// Open opens a Window. The caller writes it with Window.Write, which closes it. It returns ErrOpen
// while another is open, unless that one yields and this one does not, ErrStopped after Stop, and an
// error for invalid opts.
func (r *Recorder) Open(opts Options) (*Window, error) {
	w, err := newWindow(opts)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mu.stopped:
		return nil, ErrStopped
	case r.mu.window != nil && (w.yields || !r.mu.window.yields):
		return nil, ErrOpen
	case r.mu.window != nil:
		r.mu.window.end("it made way for another recording")
		r.closeLocked()
	}
	r.mu.window, w.recorder = w, r
	for p := range r.mu.parts {
		p.record(w)
	}
	r.open.Store(w) // after the state of all informers
	return w, nil
}

func (r *Recorder) close(w *Window) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.window == w {
		w.end("it was closed")
		r.closeLocked()
	}
}

func (r *Recorder) closeLocked() {
	close(r.mu.window.closed)
	r.open.Store(nil)
	r.mu.window = nil
	for p := range r.mu.parts {
		p.record(nil)
	}
}

// wait waits until no Window is open, or ctx ends.
func (r *Recorder) wait(ctx context.Context) {
	r.mu.Lock()
	w := r.mu.window
	r.mu.Unlock()
	if w == nil {
		return
	}
	select {
	case <-w.closed:
	case <-ctx.Done():
	}
}

// Stop ends the Window that is open, if there is one, and lets no other be opened.
func (r *Recorder) Stop() {
	r.mu.Lock()
	w := r.mu.window
	r.mu.stopped = true
	r.mu.Unlock()
	if w != nil {
		w.end(ErrStopped.Error())
	}
}

type recorderKey struct{}

// With returns ctx with r, for the parts of a program.
func With(ctx context.Context, r *Recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// Of returns the Recorder of ctx; nil: there is none.
func Of(ctx context.Context) *Recorder {
	r, _ := ctx.Value(recorderKey{}).(*Recorder)
	return r
}
