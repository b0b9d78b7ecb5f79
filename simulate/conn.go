// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// conn is one end of a connection: it reads what has arrived on in, and what
// it writes arrives on out.
type conn struct {
	network *Network
	client  *conn // the end that dialled
	remote  addr
	in, out *line
	over    *sync.Once
}

// pair is the two ends of the nth connection that from makes.
func pair(n *Network, address, from string, nth int) (client, server *conn) {
	name := fmt.Sprintf("%s %d", from, nth)
	there, back := newLine(name+" there"), newLine(name+" back")
	client = &conn{network: n, remote: addr(address), in: back, out: there, over: new(sync.Once)}
	server = &conn{network: n, remote: addr(from), in: there, out: back, over: new(sync.Once)}
	client.client, server.client = client, client
	return client, server
}

func (c *conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.out.write(p) }

// Close ends both directions. The other end reads what is under way, then EOF.
func (c *conn) Close() error {
	c.over.Do(func() {
		c.in.end(net.ErrClosed)
		c.out.finish()
		c.network.closed(c.client)
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return addr("local") }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline bounds reading, in the time of the bubble.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(t)
	return nil
}

// SetWriteDeadline does nothing: writing never waits.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// line is one direction of a connection: what was sent and not read.
type line struct {
	name    string
	changed *sync.Cond
	mu      struct {
		sync.Mutex
		sent     []parcel
		err      error     // of reading and writing
		broken   time.Time // from when err holds
		finished bool      // nothing is sent any more
		black    bool      // what is sent is lost
		delay    time.Duration
		pace     Pacing    // nil: what is sent arrives at once
		nth      int       // sent so far
		last     time.Time // when the last of it arrives
		deadline time.Time
		alarm    *time.Timer // wakes the reader; nil: never needed yet
	}
}

// parcel is what one write sent. One without bytes is the end.
type parcel struct {
	bytes []byte
	due   time.Time // when it has arrived
}

func newLine(name string) *line {
	l := &line{name: name}
	l.changed = sync.NewCond(&l.mu.Mutex)
	return l
}

func (l *line) begin(delay time.Duration, black bool, pace Pacing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.delay, l.mu.black, l.mu.pace = delay, black, pace
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

// sendLocked has bytes on their way.
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

// rearmLocked has the reader woken when something arrives that is under way, or
// at the deadline.
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
	l.changed.Broadcast() // the reader sets the alarm
}

func (l *line) brokenLocked(now time.Time) bool { return l.mu.err != nil && !now.Before(l.mu.broken) }

// cut fails reading and writing as soon as that could be known here.
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

// end fails reading and writing from now on.
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

// finish has the reader get EOF after what was sent. In a black hole it waits
// on: the news of the end is lost too.
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

func (l *line) setDelay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.delay = d
}
