// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/flyball-dev/flyball/internal/keypair"
)

// An endpoint is a server that the environment itself calls. Requests are few, so it keeps no connections, and none is left
// behind when the environment ends.
type endpoint struct {
	base string // scheme, host and port
	http *http.Client
}

// newHTTPClient returns a client that trusts the authority and presents the certificate of user.
func newHTTPClient(trusted *keypair.Authority, user keypair.Encoded) (*http.Client, error) {
	cert, err := tls.X509KeyPair(user.Cert, user.Key)
	if err != nil {
		return nil, fmt.Errorf("read a certificate just made: %w", err)
	}
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: trusted.Pool(), Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
	}}, nil
}

// An answerError is an HTTP answer that is not a success.
type answerError struct {
	method, path string
	code         int
	message      string
}

func (e *answerError) Error() string {
	return fmt.Sprintf("%s %s: %d %s: %s", e.method, e.path, e.code, http.StatusText(e.code), e.message)
}

// do sends one request and returns the body of its answer, or an *answerError with the server's reason.
func (e endpoint) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, e.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json,*/*")
	resp, err := e.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	if resp.StatusCode >= 300 {
		return nil, &answerError{method: method, path: path, code: resp.StatusCode, message: reason(answer)}
	}
	return answer, nil
}

// reason returns the message of a Status, or the answer itself if it is none.
func reason(answer []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &status) == nil && status.Message != "" {
		return status.Message
	}
	return strings.TrimSpace(string(answer[:min(len(answer), 2000)]))
}
