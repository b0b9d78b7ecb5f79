// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
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

// pair is the two ends of a new connection.
func pair(n *Network, address string, delay time.Duration, black bool) (client, server *conn) {
	there, back := newLine(delay, black), newLine(delay, black)
	client = &conn{network: n, remote: addr(address), in: back, out: there, over: new(sync.Once)}
	server = &conn{network: n, remote: addr("client"), in: there, out: back, over: new(sync.Once)}
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
	changed *sync.Cond
	mu      struct {
		sync.Mutex
		sent     []parcel
		err      error // of reading and writing, at once
		finished bool  // EOF comes after what was sent
		black    bool  // what is sent is lost
		delay    time.Duration
		deadline time.Time
		alarm    *time.Timer // wakes the reader at the deadline
	}
}

// parcel is what one write sent.
type parcel struct {
	bytes []byte
	due   time.Time // when it has arrived
}

func newLine(delay time.Duration, black bool) *line {
	l := &line{}
	l.changed = sync.NewCond(&l.mu.Mutex)
	l.mu.delay, l.mu.black = delay, black
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
	case l.mu.err != nil:
		return 0, l.mu.err
	case l.mu.finished:
		return 0, io.ErrClosedPipe
	case l.mu.black:
		return len(p), nil
	}
	due := time.Now().Add(l.mu.delay)
	l.mu.sent = append(l.mu.sent, parcel{append([]byte(nil), p...), due})
	if l.mu.delay > 0 {
		time.AfterFunc(l.mu.delay, l.wake)
	}
	l.changed.Broadcast()
	return len(p), nil
}

func (l *line) read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		now := time.Now()
		switch {
		case l.mu.err != nil:
			return 0, l.mu.err
		case !l.mu.deadline.IsZero() && !now.Before(l.mu.deadline):
			return 0, os.ErrDeadlineExceeded
		case len(l.mu.sent) > 0 && !now.Before(l.mu.sent[0].due):
			return l.takeLocked(p), nil
		case len(l.mu.sent) == 0 && l.mu.finished && !l.mu.black:
			return 0, io.EOF
		}
		l.changed.Wait()
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
		l.mu.alarm = nil
	}
	if !t.IsZero() {
		l.mu.alarm = time.AfterFunc(time.Until(t), l.wake)
	}
	l.changed.Broadcast()
}

// end fails reading and writing from now on.
func (l *line) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.err == nil {
		l.mu.err = err
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
	l.mu.finished = true
	l.changed.Broadcast()
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
