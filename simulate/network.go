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
		dialled int
	}
}

// NewNetwork returns a network without faults.
func NewNetwork() *Network {
	n := &Network{}
	n.changed = sync.NewCond(&n.mu.Mutex)
	n.mu.open = map[*conn]*conn{}
	return n
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
	client, server := pair(n, address, n.mu.delay, n.mu.black)
	n.mu.open[client] = server
	n.mu.waiting = append(n.mu.waiting, server)
	n.changed.Signal()
	return client, nil
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
		c.in.end(syscall.ECONNRESET)
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
