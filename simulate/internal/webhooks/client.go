// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
)

// largestReview is what is read of a webhook's answer.
const largestReview = 16 << 20

// Dialer is how webhooks are reached.
type Dialer struct {
	Transport http.RoundTripper                                             // nil: connections of dial
	Dial      func(ctx context.Context, webhook *url.URL) (net.Conn, error) // nil: the network
}

// webhookClient is how one webhook is called.
type webhookClient struct {
	dialer  Dialer
	url     *string
	bundle  []byte // of certificates, in PEM; empty: the system's
	timeout time.Duration
}

// service has the client call a Service, at the name that it has in a cluster.
func (c *webhookClient) service(namespace, name string, path *string, port *int32) {
	at := fmt.Sprintf("https://%s.%s.svc", name, namespace)
	if port != nil {
		at += fmt.Sprintf(":%d", *port)
	} else {
		at += ":443"
	}
	if path != nil && *path != "" {
		at += "/" + strings.TrimPrefix(*path, "/")
	}
	c.url = &at
}

// post sends a question, and returns the answer.
func (c *webhookClient) post(ctx context.Context, question any) ([]byte, error) {
	if c.url == nil {
		return nil, errors.New("webhook configuration must have either service or URL")
	}
	body, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	at := fmt.Sprintf("%s?timeout=%s", *c.url, c.timeout)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", encode.ContentJSON)
	request.Header.Set("Accept", encode.ContentJSON+", */*")
	request.Header.Set("User-Agent", "kube-apiserver-admission")
	transport, end, err := c.roundTripper(request.URL)
	if err != nil {
		return nil, err
	}
	defer end()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, largestReview))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode < http.StatusOK || answer.StatusCode > http.StatusPartialContent {
		var status metav1.Status
		if json.Unmarshal(text, &status) == nil && status.Kind == "Status" && status.Status == metav1.StatusFailure {
			return nil, apierrors.FromObject(&status)
		}
		said := "unknown"
		if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/") {
			said = strings.TrimSpace(string(text))
		}
		return nil, apierrors.NewGenericServerResponse(answer.StatusCode, http.MethodPost, schema.GroupResource{}, "", said, 0, true)
	}
	return text, nil
}

// handshakeTimeout bounds what goes on when the question is given up: a transport
// finishes the connection that it has begun, for the next request.
const handshakeTimeout = 10 * time.Second

// roundTripper returns the transport of one question, and a function that closes
// its connection. Like a real API server it does not announce that: a server that
// redirects before it has read the body then still reads it, and would otherwise
// close the connection while the client writes.
func (c *webhookClient) roundTripper(webhook *url.URL) (_ http.RoundTripper, end func(), _ error) {
	if c.dialer.Transport != nil {
		return c.dialer.Transport, func() {}, nil
	}
	trusted := &tls.Config{}
	if len(c.bundle) > 0 {
		trusted.RootCAs = x509.NewCertPool()
		if !trusted.RootCAs.AppendCertsFromPEM(c.bundle) {
			return nil, nil, errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	transport := &http.Transport{TLSClientConfig: trusted, TLSHandshakeTimeout: handshakeTimeout}
	if c.dialer.Dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dialer.Dial(ctx, webhook) }
	}
	return transport, transport.CloseIdleConnections, nil
}
