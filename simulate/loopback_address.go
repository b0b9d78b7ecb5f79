// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// listenAddress returns the address to listen on. Without anyAddress it refuses addresses that
// other machines can reach.
func listenAddress(address string, anyAddress bool) (string, error) {
	address = cmp.Or(address, "127.0.0.1:0")
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("listen on %q: %w; write host and port, as 127.0.0.1:6443, or 127.0.0.1:0 for any free port", address, err)
	}
	if host == "localhost" {
		host = "127.0.0.1" // whatever the machine's names say
	}
	if ip := net.ParseIP(host); !anyAddress && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("listen on %q: the simulated API server is for this machine alone; write 127.0.0.1:%s", address, cmp.Or(port, "0"))
	}
	return net.JoinHostPort(host, port), nil
}

// namesOf returns what clients may call a server at an address: its host or, if it listens on
// all addresses, those of this machine and its name.
func namesOf(address string) (names []string) {
	host, _, _ := net.SplitHostPort(address) // listenAddress has split it
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return []string{host}
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		names = append(names, name)
	}
	addresses, _ := net.InterfaceAddrs() // without them the certificate has fewer names
	for _, each := range addresses {
		if network, ok := each.(*net.IPNet); ok {
			names = append(names, network.IP.String())
		}
	}
	return names
}

// reachedAt returns the address at which programs of this machine reach a listener.
func reachedAt(listening net.Addr) string {
	tcp, ok := listening.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return listening.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

// addressError says why listening on an address failed, and what to do.
func addressError(address string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "; another program has the port, so stop it, or name another port, or 0 for any that is free"
	case errors.Is(err, os.ErrPermission):
		advice = "; ports below 1024 need rights, so name a higher one, or 0 for any that is free"
	}
	return fmt.Errorf("listen on %s for the simulated API: %w%s", address, err, advice)
}
