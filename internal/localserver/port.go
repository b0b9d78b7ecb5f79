// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package localserver has what servers on this machine need: a free port, for those that must know
// theirs before they listen, and a kubeconfig for their users.
package localserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are at least FirstPort and below LastPort, and so below the usual ephemeral ranges: until it
// is used, an ephemeral port could become that of another listener, or of a client's connection.
const (
	FirstPort = 20000
	LastPort  = 32000
)

// FreePort returns a port of 127.0.0.1 that is free now. It may be taken before it is used.
func FreePort() (int, error) {
	var failed error
	for range 50 {
		port := FirstPort + rand.IntN(LastPort-FirstPort)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
		failed = err
	}
	return 0, fmt.Errorf("find a free port on 127.0.0.1 in 50 tries: %w", failed)
}

// FreeAddress is FreePort, and returns the address with the port.
func FreeAddress() (string, error) {
	port, err := FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
