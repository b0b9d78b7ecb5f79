// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"io"
	"os"
	"sync"
	"time"
)

// line is one direction of a connection: what was sent and not read yet.
type line struct {
	name    string
	changed *sync.Cond
	mu      struct {
		sync.Mutex
		sent     []parcel
		err      error     // of reading and writing
		broken   time.Time // when err begins
		finished bool      // the sender has closed
		black    bool      // what is sent is lost
		delay    time.Duration
		pace     func(direction string, nth int, earliest time.Time) time.Time // nil: at the earliest
		nth      int                                                           // sent so far
		last     time.Time                                                     // when the last parcel arrives
		deadline time.Time
		alarm    *time.Timer // wakes the reader; nil until it is needed
	}
}

// parcel is the bytes of one write. A parcel without bytes is the end.
type parcel struct {
	bytes []byte
	due   time.Time // when it arrives
}

func newLine(opts Options, direction string) *line {
	l := &line{name: opts.Name + direction}
	l.changed = sync.NewCond(&l.mu.Mutex)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.delay, l.mu.black, l.mu.pace = opts.Delay, opts.Black, opts.Pace
	return l
}

func (l *line) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed.Broadcast()
}

func (l *line) write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.brokenLocked(time.Now()):
		return 0, l.mu.err
	case l.mu.finished:
		return 0, io.ErrClosedPipe
	case l.mu.black:
		return len(p), nil
	}
	if len(p) > 0 {
		l.sendLocked(append([]byte(nil), p...))
	}
	return len(p), nil
}

// sendLocked sends bytes, which arrive later.
func (l *line) sendLocked(bytes []byte) {
	due := time.Now().Add(l.mu.delay)
	if !due.After(l.mu.last) {
		due = l.mu.last
		if l.mu.pace != nil {
			due = due.Add(1)
		}
	}
	if l.mu.pace != nil {
		due = l.mu.pace(l.name, l.mu.nth, due)
	}
	l.mu.nth++
	l.mu.last = due
	l.mu.sent = append(l.mu.sent, parcel{bytes, due})
	l.changed.Broadcast()
}

func (l *line) read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		now := time.Now()
		switch {
		case l.brokenLocked(now):
			return 0, l.mu.err
		case !l.mu.deadline.IsZero() && !now.Before(l.mu.deadline):
			return 0, os.ErrDeadlineExceeded
		case len(l.mu.sent) > 0 && !now.Before(l.mu.sent[0].due):
			if len(l.mu.sent[0].bytes) == 0 {
				return 0, io.EOF
			}
			return l.takeLocked(p), nil
		}
		l.rearmLocked(now)
		l.changed.Wait()
	}
}

// rearmLocked sets the alarm that wakes the reader when the next parcel arrives, when the
// line breaks, or at the deadline.
func (l *line) rearmLocked(now time.Time) {
	at := l.mu.deadline
	if l.mu.err != nil && (at.IsZero() || l.mu.broken.Before(at)) {
		at = l.mu.broken
	}
	if len(l.mu.sent) > 0 && (at.IsZero() || l.mu.sent[0].due.Before(at)) {
		at = l.mu.sent[0].due
	}
	switch {
	case at.IsZero():
	case l.mu.alarm == nil:
		l.mu.alarm = time.AfterFunc(at.Sub(now), l.wake)
	default:
		l.mu.alarm.Reset(at.Sub(now))
	}
}

func (l *line) takeLocked(p []byte) int {
	first := &l.mu.sent[0]
	n := copy(p, first.bytes)
	if first.bytes = first.bytes[n:]; len(first.bytes) == 0 {
		l.mu.sent = l.mu.sent[1:]
	}
	return n
}

func (l *line) setDeadline(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.deadline = t
	if l.mu.alarm != nil {
		l.mu.alarm.Stop()
	}
	l.changed.Broadcast() // the reader sets the alarm again
}

func (l *line) brokenLocked(now time.Time) bool { return l.mu.err != nil && !now.Before(l.mu.broken) }

// cut fails reads and writes as soon as that could be known here.
func (l *line) cut(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.err != nil {
		return
	}
	l.mu.err, l.mu.broken = err, time.Now()
	if l.mu.pace != nil {
		l.mu.broken = l.mu.pace(l.name, l.mu.nth, l.mu.broken)
		l.mu.nth++
	}
	l.changed.Broadcast()
}

// end fails reads and writes from now on.
func (l *line) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !l.brokenLocked(now) {
		l.mu.err, l.mu.broken = err, now
	}
	if l.mu.alarm != nil {
		l.mu.alarm.Stop()
	}
	l.changed.Broadcast()
}

// finish sends EOF. In a black hole the reader keeps waiting, as EOF is lost too.
func (l *line) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.finished || l.mu.black || l.mu.err != nil {
		return
	}
	l.mu.finished = true
	l.sendLocked(nil)
}

func (l *line) setBlack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.black, l.mu.sent = true, nil
}

func (l *line) isBlack() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.black
}

func (l *line) setDelay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.delay = d
}
