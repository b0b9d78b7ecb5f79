// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

// takeFaults opens the control port, if there is one. serve answers there until ctx ends.
func (s *settings) takeFaults(faults *aim.Control, server *simulate.Server, log io.Writer) (serve func(ctx context.Context), err error) {
	if s.control == "" {
		return func(context.Context) {}, nil
	}
	host, _, err := net.SplitHostPort(s.control)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("-control=%s: write an address of this machine alone, such as 127.0.0.1:0: everybody who reaches it can cause faults", s.control)
	}
	listener, err := net.Listen("tcp", s.control)
	if err != nil {
		return nil, fmt.Errorf("-control: %w; name another port, or 0 for any that is free", err)
	}
	faults.Begin(server)
	mux := http.NewServeMux()
	mux.Handle("/faults", &aim.Port{Control: faults})
	port := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	if _, err := fmt.Fprintf(log, "faults are taken at http://%s/faults\n", listener.Addr()); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return func(ctx context.Context) {
		defer context.AfterFunc(ctx, func() { _ = port.Close() })()
		_ = port.Serve(listener) // ends with Close
		faults.Close()
	}, nil
}
