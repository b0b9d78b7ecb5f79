// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// lines passes the output of several steps on in whole lines, and reports what runs while
// they are silent. It is safe for concurrent use.
type lines struct {
	began time.Time

	mu struct {
		sync.Mutex
		out     io.Writer
		running []string
		spoke   time.Time
	}
}

func newLines(out io.Writer) *lines {
	l := &lines{began: time.Now()}
	l.mu.out, l.mu.spoke = out, l.began
	return l
}

// whole is the output of one step: it passes on what it is given up to the last line's end,
// and remembers which tests and packages failed.
type whole struct {
	lines  *lines
	rest   []byte
	failed []string
}

// Write implements io.Writer for one goroutine at a time.
func (w *whole) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	for line := range strings.Lines(string(w.rest[:end])) {
		w.record(line)
	}
	_, err := w.lines.Write(w.rest[:end])
	w.rest = w.rest[end:]
	return len(p), err
}

// record reads the go command's lines about failures.
func (w *whole) record(line string) {
	if test, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
		name, _, _ := strings.Cut(test, " ")
		w.failed = append(w.failed, strings.TrimSpace(name))
	} else if pkg, ok := strings.CutPrefix(line, "FAIL\t"); ok {
		name, _, _ := strings.Cut(strings.TrimSpace(pkg), "\t")
		w.failed = append(w.failed, "in "+name)
	}
}

// end passes on a last line without an end.
func (w *whole) end() error {
	if len(w.rest) == 0 {
		return nil
	}
	_, err := w.lines.Write(append(w.rest, '\n'))
	return err
}

// Write implements io.Writer for whole lines.
func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.spoke = time.Now()
	return l.mu.out.Write(text)
}

func (l *lines) started(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.running = append(l.mu.running, name)
}

func (l *lines) ended(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.running = slices.DeleteFunc(l.mu.running, func(other string) bool { return other == name })
}

// report prints a line whenever nothing has been printed for the time, until the returned
// function is called.
func (l *lines) report(silence time.Duration) (stop func()) {
	end := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(silence / 6)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case now := <-tick.C:
				l.printProgress(now, silence)
			}
		}
	})
	return func() { close(end); group.Wait() }
}

func (l *lines) printProgress(now time.Time, silence time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.mu.spoke) < silence-silence/6 || len(l.mu.running) == 0 {
		return
	}
	l.mu.spoke = now
	fmt.Fprintf(l.mu.out, "# after %s: %s\n", now.Sub(l.began).Round(time.Second), strings.Join(l.mu.running, " and "))
}
