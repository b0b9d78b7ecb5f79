// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// ends returns both ends of a connection, and how often an end was closed.
func ends(opts Options) (client, server *Conn, closed *int) {
	closed = new(int)
	opts.Closed = func() { *closed++ }
	client, server = New(opts)
	return client, server, closed
}

// read reads once, at most for a minute, and reports when it returned.
func read(c *Conn, start time.Time) (text string, after time.Duration, err error) {
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	buf := make([]byte, 10)
	n, err := c.Read(buf)
	return string(buf[:n]), time.Since(start), err
}

func TestConn_WhatIsSentArrivesInOrderAndInTime(t *testing.T) {
	slowFirst := func(_ string, nth int, earliest time.Time) time.Time {
		if nth == 0 {
			return earliest.Add(3 * time.Second)
		}
		return earliest
	}
	for _, c := range []struct {
		name  string
		opts  Options
		fault func(client, server *Conn)
		want  string
	}{
		{"at once", Options{}, nil, "a 0s <nil>, b 0s <nil>, EOF 0s"},
		{"delay", Options{Delay: time.Second}, nil, "a 1s <nil>, b 1s <nil>, EOF 1s"},
		{"a slow first write delays all after it", Options{Pace: slowFirst}, nil, "a 3s <nil>, b 3.000000001s <nil>, EOF 3.000000002s"},
		{"black", Options{Black: true}, nil, "i/o timeout 1m0s"},
		{"later delay", Options{}, func(_, server *Conn) { server.Delay(time.Second) }, "a 1s <nil>, b 1s <nil>, EOF 1s"},
		{"black hole", Options{}, func(_, server *Conn) { server.BlackHole() }, "i/o timeout 1m0s"},
		{"reset", Options{}, func(_, server *Conn) { server.Reset() }, "connection reset by peer 0s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, server, _ := ends(c.opts)
			if c.fault != nil {
				c.fault(client, server)
			}
			start := time.Now()
			_, _ = io.WriteString(client, "a")
			_, _ = io.WriteString(client, "b")
			_ = client.Close()
			got := ""
			for {
				text, after, err := read(server, start)
				if err != nil {
					for _, known := range []error{io.EOF, os.ErrDeadlineExceeded, syscall.ECONNRESET} {
						if errors.Is(err, known) {
							got += fmt.Sprint(known, " ", after)
						}
					}
					break
				}
				got += fmt.Sprint(text, " ", after, " ", err, ", ")
			}
			if got != c.want {
				t.Errorf("%s: got %q, want %q", c.name, got, c.want)
			}
		})
	}
}

func TestConn_CloseEndsBothDirections(t *testing.T) {
	client, server, closed := ends(Options{Client: "c", Server: "s"})
	if client.RemoteAddr().String() != "s" || server.RemoteAddr().String() != "c" {
		t.Errorf("the ends see %s and %s, want s and c", client.RemoteAddr(), server.RemoteAddr())
	}
	for range 2 {
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if *closed != 1 {
		t.Errorf("Closed was called %d times for one end, want once", *closed)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the closed end reads %v, want %v", err, net.ErrClosed)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the closed end writes %v, want %v", err, io.ErrClosedPipe)
	}
}
