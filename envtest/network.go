// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Network is the network between a client and the API server, for tests of a client that loses it. The zero Network is open. Set
// Dial of a rest.Config to Dial of the Network. It is safe for concurrent use.
type Network struct {
	mu struct {
		sync.Mutex
		shut  bool
		conns []net.Conn
	}
}

// Dial connects if the network is open.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.shut {
		_ = conn.Close()
		return nil, errors.New("the network is shut")
	}
	n.mu.conns = append(n.mu.conns, conn)
	return conn, nil
}

// Shut closes every connection, and refuses new ones until Open.
func (n *Network) Shut() { n.set(true) }

// Open allows connections again.
func (n *Network) Open() { n.set(false) }

// Cut closes every connection; the client may reconnect at once.
func (n *Network) Cut() { n.set(false) }

func (n *Network) set(shut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.shut = shut
	for _, conn := range n.mu.conns {
		_ = conn.Close()
	}
	n.mu.conns = nil
}
