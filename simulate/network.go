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

	"github.com/flyball-dev/flyball/simulate/internal/pipe"
)

// Network connects clients to one listener inside the process. It has the faults of a
// network: what is sent arrives late or never, and connections are refused or break. It
// starts no goroutine. Waiting lets the clock of a testing/synctest bubble advance. Safe for
// concurrent use.
type Network struct {
	changed *sync.Cond // on mu; a connection waits, or the listener is closed
	mu      struct {
		sync.Mutex
		waiting []*pipe.Conn              // dialed, not accepted
		open    map[*pipe.Conn]*pipe.Conn // client's end to server's end
		closed  bool                      // the listener
		refuse  bool                      // dialing fails
		black   bool                      // new connections lose what is sent
		delay   time.Duration             // of all that is sent from now on
		client  string                    // the address of new clients, as the server sees it
		pace    Pacing                    // nil: what is sent arrives at once
		dialled int
	}
}

// NewNetwork returns a network without faults.
func NewNetwork() *Network {
	n := &Network{}
	n.changed = sync.NewCond(&n.mu.Mutex)
	n.mu.open = map[*pipe.Conn]*pipe.Conn{}
	n.mu.client = "client"
	return n
}

// Pacing returns when something that is sent arrives: at the earliest time or later. line
// names one direction of one connection of the network. nth counts what was sent on it, from
// 0 and including its end. A line keeps its order whatever Pacing returns.
type Pacing func(line string, nth int, earliest time.Time) time.Time

// Pace sets when data arrives on connections that are made from now on; nil: at once. client
// is the remote address that the server sees in their requests.
func (n *Network) Pace(client string, p Pacing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.client, n.mu.pace = client, p
}

// Listener accepts the connections. After it is closed, new connections are refused.
func (n *Network) Listener() net.Listener { return listener{n} }

// Transport returns an HTTP transport over the network, for one client:
// rest.Config{Host: "http://simulated", Transport: n.Transport()}.
func (n *Network) Transport() *http.Transport {
	return &http.Transport{DialContext: n.DialContext}
}

// DialContext connects to the listener, whatever the address. It waits only for the delay of
// the network.
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
		return nil, &net.OpError{Op: "dial", Net: network, Addr: pipe.Addr(address), Err: syscall.ECONNREFUSED}
	}
	n.mu.dialled++
	var client, server *pipe.Conn
	client, server = pipe.New(pipe.Options{
		Name: fmt.Sprintf("%s %d", n.mu.client, n.mu.dialled), Client: pipe.Addr(n.mu.client), Server: pipe.Addr(address),
		Delay: n.mu.delay, Black: n.mu.black, Pace: n.mu.pace, Closed: func() { n.closed(client) },
	})
	n.mu.open[client] = server
	n.mu.waiting = append(n.mu.waiting, server)
	n.changed.Signal()
	return client, nil
}

// Open returns the number of open connections.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.mu.open)
}

// Dialled returns the number of connections that were made.
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

// Refuse refuses new connections, or ends that. Open connections stay open.
func (n *Network) Refuse(refuse bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.refuse = refuse
}

// BlackHole loses, without an error, all that is sent on open connections from now on, for as
// long as they are open. New connections are not affected.
func (n *Network) BlackHole() {
	for _, c := range n.ends() {
		c.BlackHole()
	}
}

// BlackHoleNew is BlackHole for connections that are made from now on, or ends that.
func (n *Network) BlackHoleNew(black bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.black = black
}

// Cut resets all open connections, for both ends.
func (n *Network) Cut() {
	for _, c := range n.ends() {
		c.Reset()
	}
}

// Delay delays all that is sent from now on.
func (n *Network) Delay(d time.Duration) {
	n.mu.Lock()
	n.mu.delay = d
	n.mu.Unlock()
	for _, c := range n.ends() {
		c.Delay(d)
	}
}

// ends returns both ends of all open connections.
func (n *Network) ends() []*pipe.Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []*pipe.Conn
	for client, server := range n.mu.open {
		out = append(out, client, server)
	}
	return out
}

func (n *Network) closed(client *pipe.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.mu.open, client)
}

type listener struct{ n *Network }

// Accept blocks until the next connection.
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

func (l listener) Addr() net.Addr { return pipe.Addr("simulated") }
