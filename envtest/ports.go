// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the ranges that systems use for outgoing connections. A port from those ranges could, while
// the API server is down, become the near end of a client's own attempt to reach it, and the server could not come back.
const (
	firstPort = 20000
	lastPort  = 32000
)

// freePort returns a port of 127.0.0.1 on which nobody listens now. Someone else may take it before it is used.
func freePort() (int, error) {
	var last error
	for range 50 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp", loopback(port))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("find a free port on 127.0.0.1 in 50 tries: %w", last)
}

// loopback is the address of a port on the machine itself.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
