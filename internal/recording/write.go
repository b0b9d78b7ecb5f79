// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	fileSize  = 1 << 20     // of a file of the log; a single entry may be larger
	fileEvery = time.Second // what was recorded is in the bundle after this, if it is not large
)

// Write writes the bundle to out until ctx ends, the limit is reached or out fails, and closes w.
// It returns the error of out.
func (w *Window) Write(ctx context.Context, out io.Writer) error {
	defer w.drop()
	b := newBundleWriter(out)
	b.file("bundle.json", Head{Format: Format, Program: filepath.Base(os.Args[0]), Began: w.began, Redact: w.redact})
	for b.err == nil {
		select {
		case <-ctx.Done():
			w.end(w.reason(ctx))
			w.recorder.close(w)
		case <-w.wake:
		case <-time.After(fileEvery):
		}
		reason := w.drain(b)
		if time.Since(b.flushed) >= fileEvery {
			b.flush()
		}
		if reason != "" {
			b.flush()
			b.file("end.json", End{Entries: b.entries, Reason: reason})
			break
		}
	}
	return b.close()
}

// reason returns why w ends with ctx.
func (w *Window) reason(ctx context.Context) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "its time is over"
	case w.yields: // a Ring's, which runs as long as the program
		return ErrStopped.Error()
	}
	return "the client left"
}

// drop closes w, and forgets what is not written.
func (w *Window) drop() {
	w.end("its writer failed") // unless it has ended already
	w.recorder.close(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.queue, w.mu.bytes = nil, 0
}

// drain writes what waits, and returns why nothing follows; empty: more may.
func (w *Window) drain(b *bundleWriter) (over string) {
	w.mu.Lock()
	queue := w.mu.queue
	w.mu.queue = nil
	over = w.mu.over
	w.mu.Unlock()
	for i := range queue {
		if e := &queue[i]; !w.write(b, e) {
			return w.fill(!b.more)
		}
		w.mu.Lock()
		w.mu.bytes -= queue[i].bytes
		w.mu.Unlock()
		queue[i] = waiting{}
	}
	return over
}

// write writes an entry and the objects that follow it, and reports whether the limit allows that.
func (w *Window) write(b *bundleWriter, e *waiting) bool {
	if w.isExceeded(b) {
		return false
	}
	if e.fill != nil {
		e.fill(w, &e.Entry)
	}
	b.entry(&e.Entry)
	if e.all == nil {
		b.more = b.more || e.What != Informer
		return true
	}
	for obj := range e.all {
		if w.isExceeded(b) || b.err != nil {
			return b.err != nil
		}
		if text := w.object(e.kind, e.Resource, obj, ""); text != nil {
			b.entry(&Entry{At: e.At, What: Object, Informer: e.Informer, Object: text})
		}
	}
	return true
}

func (w *Window) isExceeded(b *bundleWriter) bool { return b.written > w.limit }

// fill ends w by its limit, and returns why it has ended.
func (w *Window) fill(stateAlone bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	reason := fmt.Sprintf("it has reached its limit of %d MiB", w.limit>>20)
	if stateAlone {
		reason = fmt.Sprintf("the objects of the informers alone exceed its limit of %d MiB; raise it", w.limit>>20)
	}
	w.overLocked(reason)
	w.mu.full = true
	return w.mu.over
}

// bundleWriter writes the files of a bundle. After an error it does nothing.
type bundleWriter struct {
	zip     *gzip.Writer
	tar     *tar.Writer
	err     error
	log     []byte
	files   int
	entries int
	written int64
	more    bool // than the state of informers
	flushed time.Time
}

func newBundleWriter(out io.Writer) *bundleWriter {
	zip, _ := gzip.NewWriterLevel(out, gzip.BestSpeed) // the level is valid
	return &bundleWriter{zip: zip, tar: tar.NewWriter(zip), flushed: time.Now()}
}

func (b *bundleWriter) entry(e *Entry) {
	text, err := json.Marshal(e)
	if err != nil {
		b.fail(fmt.Errorf("write an entry of a recording: %w", err))
		return
	}
	b.entries++
	b.written += int64(len(text)) + 1
	b.log = append(append(b.log, text...), '\n')
	if len(b.log) >= fileSize {
		b.flush()
	}
}

// flush writes the entries so far as a file of the log, so that a reader has them.
func (b *bundleWriter) flush() {
	b.flushed = time.Now()
	if len(b.log) == 0 {
		return
	}
	b.files++
	b.raw(fmt.Sprintf("log/%06d.jsonl", b.files), b.log)
	b.log = b.log[:0]
}

func (b *bundleWriter) file(name string, content any) {
	text, err := json.Marshal(content)
	if err != nil {
		b.fail(err)
		return
	}
	b.raw(name, append(text, '\n'))
}

func (b *bundleWriter) raw(name string, text []byte) {
	if b.err != nil {
		return
	}
	b.fail(b.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: time.Now()}))
	if b.err == nil {
		_, err := b.tar.Write(text)
		b.fail(err)
	}
	if b.err == nil {
		b.fail(b.tar.Flush())
	}
	if b.err == nil {
		b.fail(b.zip.Flush())
	}
}

func (b *bundleWriter) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *bundleWriter) close() error {
	if b.err == nil {
		b.fail(b.tar.Close())
	}
	if b.err == nil {
		b.fail(b.zip.Close())
	}
	return b.err
}
