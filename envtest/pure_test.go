// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestMergeArgs(t *testing.T) {
	own := map[string][]string{"profiling": {"false"}, "secure-port": {"1"}}
	for _, tc := range []struct {
		name string
		set  map[string][]string
		want []string
	}{
		{"own alone", nil, []string{"--profiling=false", "--secure-port=1"}},
		{"another flag", map[string][]string{"v": {"4"}}, []string{"--profiling=false", "--secure-port=1", "--v=4"}},
		{"replaced", map[string][]string{"profiling": {"true"}}, []string{"--profiling=true", "--secure-port=1"}},
		{"taken away", map[string][]string{"profiling": nil}, []string{"--secure-port=1"}},
		{"several values", map[string][]string{"a": {"y", "x"}}, []string{"--a=x", "--a=y", "--profiling=false", "--secure-port=1"}},
	} {
		if got := mergeArgs(own, tc.set); !slices.Equal(got, tc.want) {
			t.Errorf("%s: mergeArgs = %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestOnFreePort_TriesAnotherOnlyWhenTaken(t *testing.T) {
	other := errors.New("another fault")
	for _, tc := range []struct {
		name    string
		answers []error
		want    error
	}{
		{"free", []error{nil}, nil},
		{"taken twice", []error{errPortTaken, fmt.Errorf("it ended: %w", errPortTaken), nil}, nil},
		{"another fault", []error{other}, other},
		{"always taken", []error{errPortTaken, errPortTaken, errPortTaken, errPortTaken, errPortTaken}, errPortTaken},
	} {
		tries := 0
		err := onFreePort(func(port int) error {
			if port < firstPort || port >= lastPort {
				t.Errorf("%s: port %d, want one from %d to %d", tc.name, port, firstPort, lastPort)
			}
			tries++
			return tc.answers[tries-1]
		})
		if !errors.Is(err, tc.want) || tries != len(tc.answers) {
			t.Errorf("%s: %v after %d tries, want %v after %d", tc.name, err, tries, tc.want, len(tc.answers))
		}
	}
}

func TestKubeconfig_SaysWhatTheConfigurationSays(t *testing.T) {
	tlsOf := func(ca, cert, key string) rest.TLSClientConfig {
		return rest.TLSClientConfig{CAData: []byte(ca), CertData: []byte(cert), KeyData: []byte(key)}
	}
	for name, want := range map[string]*rest.Config{
		"certificate": {Host: "https://127.0.0.1:1", TLSClientConfig: tlsOf("ca", "cert", "key")},
		"token":       {Host: "https://127.0.0.1:2", TLSClientConfig: tlsOf("ca", "", ""), BearerToken: "secret"},
	} {
		content, err := kubeconfigOf(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := clientcmd.RESTConfigFromKubeConfig(content)
		if err != nil {
			t.Fatal(err)
		}
		if got.Host != want.Host || got.BearerToken != want.BearerToken || string(got.CAData) != string(want.CAData) ||
			string(got.CertData) != string(want.CertData) || string(got.KeyData) != string(want.KeyData) {
			t.Errorf("%s: read back %v, want %v", name, got, want)
		}
	}
}

func TestAuthority_IsTrustedForItsOwnAlone(t *testing.T) {
	now := time.Now()
	own, err := newAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	server, err := own.server(now)
	if err != nil {
		t.Fatal(err)
	}
	client, err := own.client(now, "jane", []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(client.cert, client.key); err != nil {
		t.Errorf("certificate and key do not belong together: %v", err)
	}
	verify := func(pair keyPair, by *authority, usage x509.ExtKeyUsage) (*x509.Certificate, error) {
		block, _ := pem.Decode(pair.cert)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(by.cert)
		_, err = cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
		return cert, err
	}
	cert, err := verify(client, own, x509.ExtKeyUsageClientAuth)
	if err != nil || cert.Subject.CommonName != "jane" || !slices.Equal(cert.Subject.Organization, []string{"a", "b"}) {
		t.Errorf("client certificate of %v, %v, want jane of groups a and b", cert.Subject, err)
	}
	if _, err := verify(client, own, x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("a user's certificate is good for a server")
	}
	if _, err := verify(client, other, x509.ExtKeyUsageClientAuth); err == nil {
		t.Error("another authority accepts the certificate: users of the API server could log in to etcd")
	}
	cert, err = verify(server, own, x509.ExtKeyUsageServerAuth)
	if err != nil || cert.VerifyHostname("127.0.0.1") != nil || !slices.ContainsFunc(cert.IPAddresses, net.IPv6loopback.Equal) {
		t.Errorf("server certificate for %v, %v, want one for the machine itself", cert.IPAddresses, err)
	}
}

func TestReason(t *testing.T) {
	for answer, want := range map[string]string{
		`{"kind":"Status","message":"no"}`: "no",
		`{"error":"gone","code":11}`:       `{"error":"gone","code":11}`,
		" plain\n":                         "plain",
		strings.Repeat("x", 5000):          strings.Repeat("x", 2000),
	} {
		if got := reason([]byte(answer)); got != want {
			t.Errorf("reason(%.40q) = %.40q, want %.40q", answer, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"a\nb\nc\n":            "a\nb\nc",
		"a\nb\nc\nd":           "a\n…\nc\nd",
		"\na\nb\nc\nd\ne\nf\n": "a\n…\ne\nf",
	} {
		if got := shorten(text, 1, 2); got != want {
			t.Errorf("shorten(%q) = %q, want %q", text, got, want)
		}
	}
}
