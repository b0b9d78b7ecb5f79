// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package freeport finds ports for servers of tests that must know theirs before they listen.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are at least First and below Last, and so below the usual ephemeral ranges: until it is
// used, an ephemeral port could become that of another listener, or of a client's connection.
const (
	First = 20000
	Last  = 32000
)

// Find returns a port of 127.0.0.1 that is free now. It may be taken before it is used.
func Find() (int, error) {
	var failed error
	for range 50 {
		port := First + rand.IntN(Last-First)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
		failed = err
	}
	return 0, fmt.Errorf("find a free port on 127.0.0.1 in 50 tries: %w", failed)
}

// Address is Find, and returns the address with the port.
func Address() (string, error) {
	port, err := Find()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
