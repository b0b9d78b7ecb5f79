// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are below the usual ephemeral ranges. While the API server is down, an ephemeral port could become the local port
// of a client's own connection attempt, and the server could not come back.
const (
	firstPort = 20000
	lastPort  = 32000
)

// freePort returns a port of 127.0.0.1 that is free now. It may be taken before it is used.
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

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
