// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// forwarder connects to a port of a Pod through the API server, as kubectl port-forward does, but
// without a port of this machine that others could use.
type forwarder struct {
	name   string // of the Pod
	port   string
	dialer httpstream.Dialer

	mu       sync.Mutex
	conn     httpstream.Connection // nil: none is open
	requests int
}

// newForwarder returns one over WebSocket, or over SPDY for a server that lacks that. It sends
// nothing.
func newForwarder(cfg *rest.Config, namespace, pod string, port int) (*forwarder, error) {
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	to := server.JoinPath("api", "v1", "namespaces", url.PathEscape(namespace), "pods", url.PathEscape(pod), "portforward")
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, to)
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(to, cfg)
	if err != nil {
		return nil, err
	}
	dialer := portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	return &forwarder{name: namespace + "/" + pod, port: strconv.Itoa(port), dialer: dialer}, nil
}

// dial returns a connection to the port.
func (f *forwarder) dial(context.Context) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.connectLocked(); err != nil {
		return nil, err
	}
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, f.port)
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(f.requests))
	f.requests++
	problems, err := f.conn.CreateStream(headers)
	if err != nil {
		f.dropLocked()
		return nil, fmt.Errorf("forward a port of the Pod %s: %w", f.name, err)
	}
	_ = problems.Close() // nothing is written there
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := f.conn.CreateStream(headers)
	if err != nil {
		f.dropLocked()
		return nil, fmt.Errorf("forward a port of the Pod %s: %w", f.name, err)
	}
	return &forwarded{data, f.conn, problems}, nil
}

func (f *forwarder) connectLocked() error {
	if f.conn != nil {
		select {
		case <-f.conn.CloseChan():
			f.dropLocked()
		default:
			return nil
		}
	}
	conn, protocol, err := f.dialer.Dial(portforward.PortForwardProtocolV1Name)
	switch {
	case err != nil && strings.Contains(err.Error(), "forbidden"):
		return fmt.Errorf("forward a port of the Pod %s: %w\na Role with the resource pods/portforward and the verbs get and create allows it", f.name, err)
	case err != nil:
		return fmt.Errorf("forward a port of the Pod %s: %w", f.name, err)
	case protocol != portforward.PortForwardProtocolV1Name:
		_ = conn.Close() // it is of no use
		return fmt.Errorf("forward a port of the Pod %s: the server speaks %q, not %q", f.name, protocol, portforward.PortForwardProtocolV1Name)
	}
	f.conn = conn
	return nil
}

func (f *forwarder) dropLocked() {
	if f.conn != nil {
		_ = f.conn.Close() // what it carried has failed
		f.conn = nil
	}
}

func (f *forwarder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropLocked()
}

// forwarded is a connection to a port of a Pod. It has no deadlines.
type forwarded struct {
	httpstream.Stream
	conn     httpstream.Connection
	problems httpstream.Stream // what the kubelet could not do
}

const mostSaid = 4096 // bytes

// Read returns what the kubelet has said in place of the end. The kubelet ends both streams.
func (c *forwarded) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	if err == nil {
		return n, nil
	}
	said, broken := io.ReadAll(io.LimitReader(c.problems, mostSaid))
	if broken == nil && len(said) > 0 {
		err = errors.New(strings.TrimSpace(string(said)))
	}
	return n, err
}

// Close ends both streams.
func (c *forwarded) Close() error {
	err := c.Reset()
	c.conn.RemoveStreams(c.Stream, c.problems)
	return cmp.Or(err, c.problems.Reset())
}

func (c *forwarded) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *forwarded) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *forwarded) SetDeadline(time.Time) error      { return nil }
func (c *forwarded) SetReadDeadline(time.Time) error  { return nil }
func (c *forwarded) SetWriteDeadline(time.Time) error { return nil }

// bearerToken returns the token of a configuration, also that of a command or a file. Empty: its
// user has none, but a certificate.
func bearerToken(ctx context.Context, cfg *rest.Config) (string, error) {
	header := ""
	seen := errors.New("seen")
	transport, err := rest.HTTPWrappersForConfig(cfg, roundTripper(func(r *http.Request) (*http.Response, error) {
		header = r.Header.Get("Authorization")
		return nil, seen
	}))
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://kubernetes/", nil)
	if err != nil {
		return "", err
	}
	answer, err := transport.RoundTrip(r)
	if answer != nil {
		_ = answer.Body.Close() // there is none
	}
	if err != nil && !errors.Is(err, seen) {
		return "", err
	}
	token, isBearer := strings.CutPrefix(header, "Bearer ")
	if !isBearer {
		return "", nil
	}
	return token, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
