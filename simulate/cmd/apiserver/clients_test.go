// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"
)

// untrusting is a client that checks no certificate, as envtest's for health checks.
func untrusting() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
}

// envtestConfig is one for an address, without credentials.
func envtestConfig(address string) *rest.Config { return &rest.Config{Host: "https://" + address} }

// trusting is a client with a token that trusts the certificates in a file.
func trusting(t *testing.T, file, token string) *http.Client {
	t.Helper()
	c, err := rest.HTTPClientFor(&rest.Config{BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: file}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}
