// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"errors"
	"net"
	"time"

	"k8s.io/client-go/rest"
)

// ErrGateLost is in the error of each request of a client whose configuration has lost
// the gate: it could write while another process leads, so it gets no connection.
var ErrGateLost = errors.New("this client bypasses the write gate of leader election, which the configuration from Manager.Config has: " +
	"add wrappers by Config.Wrap instead of replacing WrapTransport, make anonymous clients of Manager.StandbyConfig, " +
	"or use that for what may write on every replica")

// passedKey is the key under which the context of a request has the gate that it has
// passed.
type passedKey struct{}

// given is cfg for the hands of users, who change configurations before they make
// clients of them. The gate is in WrapTransport, which can get lost. Dial is copied by
// whatever copies a configuration, and net/http calls it with the values of the context
// of the request that needs the connection: without the gate's mark there is none.
// Connections are not shared with clients of other configurations.
func (g *gate) given(cfg *rest.Config) *rest.Config {
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
