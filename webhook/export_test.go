// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net"
	"time"
)

// ListenWith makes Run serve on the given listener.
func (s *Server) ListenWith(listener net.Listener) {
	s.listen = func(context.Context, string) (net.Listener, error) { return listener, nil }
}

// Pair returns a new pair for names, valid from an hour before at, as PEM, and the
// authority that signed it.
func Pair(at time.Time, lifetime time.Duration, names ...string) (certificate, key, authority []byte, err error) {
	ring, err := keyring{}.take(stepCreate, at, policy{names: names, lifetime: lifetime, authorityLifetime: 4 * lifetime})
	if err != nil {
		return nil, nil, nil, err
	}
	return ring.serving.Certificate, ring.serving.Key, ring.bundle(), nil
}

// DataOf returns the data of a Secret as it is when its authority was created at a
// time.
func DataOf(at time.Time, m Managed) (map[string][]byte, error) {
	m, err := m.complete()
	if err != nil {
		return nil, err
	}
	ring, err := keyring{}.take(stepCreate, at, policy{names: m.names(), lifetime: m.Lifetime, authorityLifetime: m.AuthorityLifetime})
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	ring.write(data)
	return data, nil
}
