// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
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
	defer w.recorder.close(w)
	b := newBundleWriter(out)
	b.file("bundle.json", Head{Format: Format, Program: filepath.Base(os.Args[0]), Began: w.began, Redact: w.redact})
	for b.err == nil {
		select {
		case <-ctx.Done():
			w.recorder.close(w)
			w.mu.Lock()
			w.overLocked("its time is over")
			w.mu.Unlock()
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

// drain writes what waits, and returns why nothing follows; empty: more may.
func (w *Window) drain(b *bundleWriter) (over string) {
	w.mu.Lock()
	queue := w.mu.queue
	w.mu.queue = nil
	over = w.mu.over
	w.mu.Unlock()
	for i := range queue {
		e := &queue[i]
		if b.written > w.limit {
			w.mu.Lock()
			w.overLocked(fmt.Sprintf("it has reached its limit of %d MiB", w.limit>>20))
			over = w.mu.over
			w.mu.Unlock()
			break
		}
		if e.fill != nil {
			e.fill(w, &e.Entry)
		}
		b.entry(&e.Entry)
		if e.all != nil {
			for obj := range e.all {
				b.entry(&Entry{At: e.At, What: Object, Informer: e.Informer, Object: w.object(e.kind, obj, "")})
			}
		}
		w.mu.Lock()
		w.mu.bytes -= e.bytes
		w.mu.Unlock()
		*e = waiting{}
	}
	return over
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
