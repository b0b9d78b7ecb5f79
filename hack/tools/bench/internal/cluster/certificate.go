// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newCertificate(d draw, meta metav1.ObjectMeta) *Certificate {
	c := &Certificate{ObjectMeta: meta}
	host := meta.Name + "." + meta.Namespace
	c.Spec = CertificateSpec{
		SecretName: meta.Name + "-tls", CommonName: host + ".svc",
		IssuerRef:   IssuerReference{Group: FleetVersion.Group, Kind: "ClusterIssuer", Name: pick(d, words[:8]) + "-issuer"},
		DNSNames:    []string{host + ".svc", host + ".svc.cluster.local", meta.Name + ".example.com"},
		Duration:    metav1.Duration{Duration: 90 * 24 * time.Hour},
		RenewBefore: metav1.Duration{Duration: 30 * 24 * time.Hour},
		PrivateKey:  &PrivateKey{Algorithm: "ECDSA", Size: 256, RotationPolicy: "Always"},
		Usages:      []string{"digital signature", "key encipherment", "server auth"},
	}
	issued := meta.CreationTimestamp.Unix() + int64(d.IntN(1000))
	c.Status = CertificateStatus{
		NotBefore: of(metav1.Unix(issued, 0)), NotAfter: of(after(issued, 90*24*3600)), RenewalTime: of(after(issued, 60*24*3600)), Revision: d.between(1, 20),
		Conditions: []metav1.Condition{customCondition(d, "Ready", "Ready", "Certificate is up to date and has not expired", &meta)},
	}
	return c
}
