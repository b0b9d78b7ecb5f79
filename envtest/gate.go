// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Gate is the network between a client and the API server, for tests of a client that loses it. The zero Gate is open. Set
// Dial of a rest.Config to Dial of the Gate. It is safe for concurrent use.
type Gate struct {
	mu struct {
		sync.Mutex
		shut  bool
		conns []net.Conn
	}
}

// Dial connects if the gate is open.
func (g *Gate) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.shut {
		_ = conn.Close()
		return nil, errors.New("the network is shut")
	}
	g.mu.conns = append(g.mu.conns, conn)
	return conn, nil
}

// Shut closes every connection, and refuses new ones until Open.
func (g *Gate) Shut() { g.set(true) }

// Open allows connections again.
func (g *Gate) Open() { g.set(false) }

// Cut closes every connection; the client may reconnect at once.
func (g *Gate) Cut() { g.set(false) }

func (g *Gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.shut = shut
	for _, conn := range g.mu.conns {
		_ = conn.Close()
	}
	g.mu.conns = nil
}
