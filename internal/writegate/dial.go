// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package writegate

import (
	"context"
	"errors"
	"net"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// ErrGateLost is wrapped by the error of each request of a client whose configuration
// has lost the gate: it could write while another process leads, so it gets no
// connection.
var ErrGateLost error = unsent{errors.New("this client bypasses the write gate of leader election, which its configuration had: " +
	"add wrappers by Config.Wrap instead of replacing WrapTransport, and make anonymous clients, and those of what may write on " +
	"every replica, of a configuration without the gate, such as Manager.StandbyConfig")}

// passedKey is the context key of the gate that a request has passed.
type passedKey struct{}

// Given returns cfg for users, who change configurations before they create clients.
// The gate is in WrapTransport, which can get lost. Every copy of a configuration keeps
// Dial, and net/http calls it with the context values of the request that needs the
// connection: without the gate's mark, Dial fails. Connections are not shared with
// clients of other configurations.
func (g *Gate) Given(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(g.wrapMarked)
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext // as client-go does
	}
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if ctx.Value(passedKey{}) != g {
			return nil, ErrGateLost
		}
		return dial(ctx, network, address)
	}
	return cfg
}

// OwnConnection returns cfg with its own connection and no rate limit, so that a renewal
// waits neither for a list nor for the writes of controllers. reconnect makes the next
// request open a new one: a silent HTTP/2 connection would be kept for longer than a lease
// lasts. A transport given by the program is used as it is.
func OwnConnection(cfg *rest.Config) (own *rest.Config, reconnect func()) {
	own = rest.CopyConfig(cfg)
	own.RateLimiter, own.QPS = nil, -1
	if own.Transport != nil {
		return own, func() {}
	}
	dial := own.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	connections := connrotation.NewDialer(dial)
	own.Dial = connections.DialContext
	return own, connections.CloseAll
}
