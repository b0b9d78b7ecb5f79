// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package pipe is a network connection in memory, with the faults of real ones: what is sent
// arrives late or never, and a connection breaks. Each direction has a lock of its own. A
// read waits on a condition, so that the clock of a testing/synctest bubble advances; a write
// never waits.
package pipe

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// Options of a connection.
type Options struct {
	// Name of the connection. Its directions are the name with " there" and " back".
	Name string
	// Client and Server are the remote addresses that each end sees.
	Client, Server Addr
	// Delay of all that is sent.
	Delay time.Duration
	// Black loses all that is sent.
	Black bool
	// Pace returns when the nth bytes of a direction arrive, at the earliest time or later;
	// the end of a direction counts as bytes. nil: at the earliest.
	Pace func(direction string, nth int, earliest time.Time) time.Time
	// Closed is called when an end is closed. It may be called twice.
	Closed func()
}

// Addr is an address of a network in memory.
type Addr string

// Network returns the name of the network.
func (a Addr) Network() string { return "memory" }

// String returns the address.
func (a Addr) String() string { return string(a) }

// Conn is one end of a connection.
type Conn struct {
	remote  Addr
	in, out *line // bytes to this end, and from it
	over    sync.Once
	closed  func()
}

// New returns the two ends of a connection.
func New(opts Options) (client, server *Conn) {
	there, back := newLine(opts, " there"), newLine(opts, " back")
	client = &Conn{remote: opts.Server, in: back, out: there, closed: opts.Closed}
	server = &Conn{remote: opts.Client, in: there, out: back, closed: opts.Closed}
	return client, server
}

func (c *Conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *Conn) Write(p []byte) (int, error) { return c.out.write(p) }

// Close ends both directions. The other end reads what was sent before, and then EOF.
func (c *Conn) Close() error {
	c.over.Do(func() {
		c.in.end(net.ErrClosed)
		c.out.finish()
		c.closed()
	})
	return nil
}

// LocalAddr returns the same address for all connections.
func (c *Conn) LocalAddr() net.Addr { return Addr("local") }

// RemoteAddr returns the address of the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets the deadline of reads.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline sets the deadline of reads.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(t)
	return nil
}

// SetWriteDeadline does nothing: writes never wait.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// Reset breaks the direction to this end, as soon as that could be known there.
func (c *Conn) Reset() { c.in.cut(syscall.ECONNRESET) }

// BlackHole loses, from now on, all that is sent to this end, without an error.
func (c *Conn) BlackHole() { c.in.setBlack() }

// Silent reports whether BlackHole was called, so that nothing arrives any more.
func (c *Conn) Silent() bool { return c.in.isBlack() }

// Delay delays all that is sent to this end from now on.
func (c *Conn) Delay(d time.Duration) { c.in.setDelay(d) }
