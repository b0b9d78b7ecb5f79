// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package keypair_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/keypair"
)

func TestAuthority_IsTrustedForItsOwnAlone(t *testing.T) {
	now := time.Now()
	own, err := keypair.NewAuthority(now, "test")
	if err != nil {
		t.Fatal(err)
	}
	other, err := keypair.NewAuthority(now, "test")
	if err != nil {
		t.Fatal(err)
	}
	server, err := own.Server(now)
	if err != nil {
		t.Fatal(err)
	}
	client, err := own.Client(now, "jane", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(client.Cert, client.Key); err != nil {
		t.Errorf("certificate and key do not belong together: %v", err)
	}
	verify := func(pair keypair.Encoded, by *keypair.Authority, usage x509.ExtKeyUsage) (*x509.Certificate, error) {
		block, _ := pem.Decode(pair.Cert)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		_, err = cert.Verify(x509.VerifyOptions{Roots: by.Pool(), KeyUsages: []x509.ExtKeyUsage{usage}})
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
