// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Network joins clients to one listener inside the process. Its faults are
// those of a network: what is sent may come late, never, or not be taken. It
// starts no goroutine, and its waiting is such that the clock of a
// testing/synctest bubble goes on. Safe for concurrent use.
type Network struct {
	changed *sync.Cond // on mu; a connection waits, or the listener is closed
	mu      struct {
		sync.Mutex
		waiting []*conn         // dialled, not accepted
		open    map[*conn]*conn // client's end to server's end
		closed  bool            // the listener
		refuse  bool            // dialling fails
		black   bool            // what new connections carry is lost
		delay   time.Duration   // of all that is sent from now on
		client  string          // who dials, as the server sees it
		pace    Pacing          // nil: what is sent arrives at once
		dialled int
	}
}

// NewNetwork returns a network without faults.
func NewNetwork() *Network {
	n := &Network{}
	n.changed = sync.NewCond(&n.mu.Mutex)
	n.mu.open = map[*conn]*conn{}
	n.mu.client = "client"
	return n
}

// Pacing says when what is sent arrives: at the given time or later. line names
// one direction of one connection of the network, and nth counts what was sent on
// it from 0, its end included. Each line keeps its order whatever Pacing says.
type Pacing func(line string, nth int, earliest time.Time) time.Time

// Pace has what connections carry that are made from now on arrive as p says;
// nil: at once. client is who makes them, as the server sees it in the address of
// a request.
func (n *Network) Pace(client string, p Pacing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.client, n.mu.pace = client, p
}

// Listener is where connections arrive. Closing it refuses those that come
// later.
func (n *Network) Listener() net.Listener { return listener{n} }

// Transport is an HTTP transport over the network, for one client:
// rest.Config{Host: "http://simulated", Transport: n.Transport()}.
func (n *Network) Transport() *http.Transport {
	return &http.Transport{DialContext: n.DialContext}
}

// DialContext connects to the listener, whatever the address. It does not
// wait, save for the network's delay.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d := n.delay(); d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return nil, fmt.Errorf("dial %s: %w", address, ctx.Err())
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.refuse || n.mu.closed {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: addr(address), Err: syscall.ECONNREFUSED}
	}
	n.mu.dialled++
	client, server := pair(n, address, n.mu.client, n.mu.dialled)
	for _, l := range []*line{client.in, client.out} {
		l.begin(n.mu.delay, n.mu.black, n.mu.pace)
	}
	n.mu.open[client] = server
	n.mu.waiting = append(n.mu.waiting, server)
	n.changed.Signal()
	return client, nil
}

// Open counts the connections that no client has closed.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.mu.open)
}

// Dialled counts the connections that were made.
func (n *Network) Dialled() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.dialled
}

func (n *Network) delay() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.delay
}

// Refuse has dialling fail, or ends that. Open connections go on.
func (n *Network) Refuse(refuse bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.refuse = refuse
}

// BlackHole loses, without a word, all that open connections carry from now
// on: for ever, however long they stay open. New connections are sound.
func (n *Network) BlackHole() {
	for _, c := range n.ends() {
		c.in.setBlack()
	}
}

// BlackHoleNew does the same to connections made from now on, or ends that.
func (n *Network) BlackHoleNew(black bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.black = black
}

// Cut breaks all open connections: both ends see a reset.
func (n *Network) Cut() {
	for _, c := range n.ends() {
		c.in.cut(syscall.ECONNRESET)
	}
}

// Delay has all that is sent from now on arrive so much later.
func (n *Network) Delay(d time.Duration) {
	n.mu.Lock()
	n.mu.delay = d
	n.mu.Unlock()
	for _, c := range n.ends() {
		c.in.setDelay(d)
	}
}

// ends are both ends of all open connections.
func (n *Network) ends() []*conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []*conn
	for client, server := range n.mu.open {
		out = append(out, client, server)
	}
	return out
}

func (n *Network) closed(client *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.mu.open, client)
}

type listener struct{ n *Network }

// Accept blocks for the next connection.
func (l listener) Accept() (net.Conn, error) {
	n := l.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.mu.waiting) == 0 && !n.mu.closed {
		n.changed.Wait()
	}
	if n.mu.closed {
		return nil, net.ErrClosed
	}
	c := n.mu.waiting[0]
	n.mu.waiting = n.mu.waiting[1:]
	return c, nil
}

// Close ends Accept.
func (l listener) Close() error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	l.n.mu.closed = true
	l.n.changed.Broadcast()
	return nil
}

func (l listener) Addr() net.Addr { return addr("simulated") }

// addr is a name in the network.
type addr string

func (a addr) Network() string { return "memory" }
func (a addr) String() string  { return string(a) }
