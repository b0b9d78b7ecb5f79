// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// anyHost in a list of hosts allows all.
const anyHost = "*"

// forLocalHosts accepts only requests for this machine or one of hosts. It is for
// servers on loopback: a web page in a browser on the same machine can resolve its own
// name to 127.0.0.1, and the answers would have its origin (DNS rebinding).
func forLocalHosts(hosts []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := hostOf(r.Host); !isLocal(host) && !slices.Contains(hosts, anyHost) &&
			!slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(hostOf(h), host) }) {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			http.Error(w, fmt.Sprintf("this server listens on loopback and does not answer for host %q; ask for localhost, "+
				"or name the host in Options.AllowedHosts (-allowed-hosts)", r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf returns the host of a Host header, without its port.
func hostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		header = host
	}
	return strings.TrimSuffix(strings.Trim(header, "[]"), ".")
}

// isLocal reports whether host means this machine. HTTP/1.0 requests may have no host;
// browsers always send one.
func isLocal(host string) bool {
	return host == "" || strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// onLoopback reports whether only this machine can reach a server on addr.
func onLoopback(addr net.Addr) bool {
	host, _, err := net.SplitHostPort(addr.String())
	return err == nil && net.ParseIP(host).IsLoopback()
}
