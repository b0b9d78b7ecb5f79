// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/simulate"
)

// wire is both ends of a connection.
func wire(t *testing.T, n *simulate.Network) (client, server net.Conn) {
	t.Helper()
	client, err := n.DialContext(t.Context(), "tcp", "there:1")
	if err != nil {
		t.Fatal(err)
	}
	server, err = n.Listener().Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if n, err := io.WriteString(c, text); err != nil || n != len(text) {
		t.Fatalf("write: %d, %v", n, err)
	}
}

// receive reads once, within d.
func receive(c net.Conn, d time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(d))
	buf := make([]byte, 100)
	n, err := c.Read(buf)
	return string(buf[:n]), err
}

func TestNetwork_Faults_S5(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*simulate.Network)
		want  string
		err   error
		after time.Duration
	}{
		{"none", func(*simulate.Network) {}, "hello", nil, 0},
		{"delay", func(n *simulate.Network) { n.Delay(3 * time.Second) }, "hello", nil, 3 * time.Second},
		{"delay past the deadline", func(n *simulate.Network) { n.Delay(time.Hour) }, "", os.ErrDeadlineExceeded, time.Minute},
		{"black hole", func(n *simulate.Network) { n.BlackHole() }, "", os.ErrDeadlineExceeded, time.Minute},
		{"refused to others", func(n *simulate.Network) { n.Refuse(true) }, "hello", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simulate.NewNetwork()
				client, server := wire(t, n)
				c.fault(n)
				for _, ends := range [][2]net.Conn{{client, server}, {server, client}} {
					begin := time.Now()
					send(t, ends[0], "hello")
					got, err := receive(ends[1], time.Minute)
					if got != c.want || !errors.Is(err, c.err) || time.Since(begin) != c.after {
						t.Errorf("got %q, %v after %s; want %q, %v after %s", got, err, time.Since(begin), c.want, c.err, c.after)
					}
				}
				// What was delayed past the end must not outlive the test.
				_, _ = client.Close(), server.Close()
			})
		})
	}
}

func TestNetwork_CutIsAResetForBoth_S5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simulate.NewNetwork()
		client, server := wire(t, n)
		n.Cut()
		for _, c := range []net.Conn{client, server} {
			if _, err := receive(c, time.Minute); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("read: got %v, want a reset", err)
			}
			if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("write: got %v, want a reset", err)
			}
		}
		n.Refuse(true)
		if _, err := n.DialContext(t.Context(), "tcp", "there:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: got %v, want refused", err)
		}
	})
}

func TestNetwork_EndIsReadAfterWhatWasSent_S5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := wire(t, simulate.NewNetwork())
		send(t, client, "last")
		_ = client.Close()
		if got, err := receive(server, time.Minute); got != "last" || err != nil {
			t.Errorf("got %q, %v; want \"last\"", got, err)
		}
		if _, err := receive(server, time.Minute); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want EOF", err)
		}
		if _, err := client.Read(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want closed", err)
		}
	})
}

// A server does not wait for ever for a body that is lost with its connection.
func TestServer_BodyThatDoesNotArriveEndsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simulate.NewNetwork()
		ctx, end := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		serving.Go(func() { _ = simulate.New(simulate.Options{}).Run(ctx, network.Listener()) })
		defer serving.Wait()
		defer end()
		c, err := network.DialContext(t.Context(), "tcp", "server")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = io.WriteString(c, "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: server\r\nContent-Length: 10\r\n\r\n{")
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		answer, err := io.ReadAll(c)
		if took := time.Since(begun); err != nil || took < time.Minute || took > 2*time.Minute {
			t.Errorf("the request ended after %v with %q, %v; want an answer after a minute", took, answer, err)
		}
	})
}
