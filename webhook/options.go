// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Defaults of Options.
const (
	DefaultAddress    = ":9443"
	DefaultDrainDelay = 10 * time.Second
)

// DefaultCertDir returns the default of Options.CertDir:
// k8s-webhook-server/serving-certs, in a Pod in the temporary directory, where
// kubebuilder's manifests mount the certificates, and elsewhere in the user's cache
// directory, because other users of the machine can write to /tmp. Files there that
// belong to a user other than root or that of this process are not served.
func DefaultCertDir() string {
	parent := os.TempDir()
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		if own, err := os.UserCacheDir(); err == nil {
			parent = own
		}
	}
	return filepath.Join(parent, "k8s-webhook-server", "serving-certs")
}

const (
	defaultMaxBody           = 3<<20 + 64<<10
	defaultMaxDecoded        = 192 << 20
	defaultLifetime          = 90 * 24 * time.Hour
	defaultAuthorityLifetime = 365 * 24 * time.Hour
)

// Options of a Server. The zero value is fit for production if another program, such as
// cert-manager, mounts a certificate into the Pod.
type Options struct {
	// Address to serve on. Empty: ":9443".
	Address string
	// CertDir is a directory with tls.crt and tls.key, such as a mounted Secret of type
	// kubernetes.io/tls. The files are reread every few seconds. Empty: DefaultCertDir.
	CertDir string
	// Managed makes the server create and renew its certificates itself. Nil: they come
	// from CertDir.
	Managed *Managed
	// DrainDelay is how long new requests are served after a stop has begun, until
	// clients of the Service have learned that this Pod is going. 0: 10 seconds.
	// Negative: none.
	DrainDelay time.Duration
	// MaxBody is the size of the largest request body, in bytes; all bodies being read
	// share a budget of sixteen times that. 0: 3 MiB and 64 KiB. That is two objects of
	// 1.5 MiB, the largest that etcd accepts by default, because the review of an
	// update has the old and the new object, and the rest of the review. Raise it if
	// your etcd accepts larger objects.
	MaxBody int64
	// MaxDecoded is how much memory decoding one review may allocate, in bytes. It is
	// estimated before decoding, from the review and the Go type; a larger review is
	// answered with 413. Reviews of more than an eighth of it are decoded one at a
	// time, and all others share a second budget of this size. 0: 192 MiB, or 16 times
	// MaxBody if that is more.
	MaxDecoded int64
	// ClientCAs sign the certificate that an API server presents when it calls webhooks
	// of Validate and Mutate; a request without one is answered with 401. An API server
	// presents one only if it is configured to, and never for conversions, so
	// conversions are answered without: docs/webhooks.md says what each distribution
	// supports. Nil: all clients are served.
	ClientCAs *x509.CertPool
	// ClientNames are the accepted names of the client certificate: its common name or
	// one of its DNS names. Empty: any that ClientCAs have signed. The authority of a
	// cluster also signs certificates of kubelets and users, so set the API server's
	// name.
	ClientNames []string
	// TLS may change the TLS configuration. Run calls it once. Nil: TLS 1.2 or newer.
	TLS func(*tls.Config)
	// Logger of the server. Zero: that of Run's context.
	Logger logr.Logger
}

// Managed configures a server that makes its own certificates.
//
// It needs RBAC permission to get, create and update the Secret, and to get and patch
// each configuration and CRD by name.
type Managed struct {
	// Namespace of the Secret and the Service. Empty is an error here; a manager fills
	// in the Pod's own.
	Namespace string
	// Service through which the API server reaches the webhooks.
	Service string
	// Secret that the replicas share. It is created if it does not exist. Empty: the
	// name of the Service with the suffix "-webhook-cert". Anyone who can read it can
	// impersonate the webhooks.
	Secret string
	// Names are further DNS names and IP addresses of the certificate, in addition to
	// those of the Service, for a server that is reached by URL.
	Names []string
	// Validating and Mutating are names of webhook configurations, CRDs those of
	// CustomResourceDefinitions. The server sets the caBundle of each of their webhooks
	// that leads to the Service, or to a URL of Names. Objects that do not exist yet
	// get it once they do.
	Validating, Mutating, CRDs []string
	// Lifetime of a certificate. It is renewed when a third is left. 0: 90 days.
	Lifetime time.Duration
	// AuthorityLifetime is the lifetime of the authority that signs it. 0: one year.
	AuthorityLifetime time.Duration
}

// complete sets the defaults and returns invalid options as an error.
func (o *Options) complete() error {
	var misuse []error
	o.Address = cmp.Or(o.Address, DefaultAddress)
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		misuse = append(misuse, fmt.Errorf("webhook.Options.Address %q: %w; write \"host:port\" or \":port\"", o.Address, err))
	}
	o.CertDir = cmp.Or(o.CertDir, DefaultCertDir())
	o.DrainDelay = max(cmp.Or(o.DrainDelay, DefaultDrainDelay), 0)
	if o.MaxBody < 0 {
		misuse = append(misuse, fmt.Errorf("MaxBody is %d; give a number of bytes, or 0 for %d", o.MaxBody, int64(defaultMaxBody)))
	}
	o.MaxBody = cmp.Or(max(o.MaxBody, 0), defaultMaxBody)
	if o.MaxDecoded < 0 {
		misuse = append(misuse, fmt.Errorf("MaxDecoded is %d; give a number of bytes, or 0 for %d", o.MaxDecoded, int64(defaultMaxDecoded)))
	}
	o.MaxDecoded = cmp.Or(max(o.MaxDecoded, 0), max(defaultMaxDecoded, 16*o.MaxBody))
	if len(o.ClientNames) > 0 && o.ClientCAs == nil {
		misuse = append(misuse, errors.New("ClientNames are given without ClientCAs; names are checked only in certificates that a CA has signed"))
	}
	if o.Managed != nil {
		managed, err := o.Managed.complete()
		o.Managed = &managed
		misuse = append(misuse, err)
	}
	return errors.Join(misuse...)
}

func (m Managed) complete() (Managed, error) {
	m.Secret = cmp.Or(m.Secret, m.Service+"-webhook-cert")
	m.Lifetime = cmp.Or(m.Lifetime, defaultLifetime)
	m.AuthorityLifetime = cmp.Or(m.AuthorityLifetime, defaultAuthorityLifetime)
	var misuse []error
	for _, name := range []struct {
		field, value string
		complaints   []string
	}{
		{"Namespace", m.Namespace, validation.IsDNS1123Label(m.Namespace)},
		{"Service", m.Service, validation.IsDNS1035Label(m.Service)},
		{"Secret", m.Secret, validation.IsDNS1123Subdomain(m.Secret)},
	} {
		switch {
		case name.field == "Namespace" && name.value == "":
			misuse = append(misuse, errors.New("no Namespace is set, and this process does not run in a Pod; "+
				"name that of the Service, set POD_NAMESPACE, or give certificates by CertDir (-webhook-cert-path)"))
		case len(name.complaints) > 0:
			misuse = append(misuse, fmt.Errorf("%s %q: %s", name.field, name.value, strings.Join(name.complaints, "; ")))
		}
	}
	for _, name := range m.Names {
		if net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(name)) > 0 {
			misuse = append(misuse, fmt.Errorf("name %q of Names is neither an IP address nor a DNS name", name))
		}
	}
	switch {
	case m.Lifetime < time.Minute:
		misuse = append(misuse, fmt.Errorf("a Lifetime of %v is too short; give a minute or more, or 0 for %v", m.Lifetime, defaultLifetime))
	case m.AuthorityLifetime < 3*m.Lifetime:
		misuse = append(misuse, fmt.Errorf("AuthorityLifetime is %v and Lifetime %v: it must outlive the certificates that it signs; write %v or more, or leave it out",
			m.AuthorityLifetime, m.Lifetime, 3*m.Lifetime))
	}
	if err := errors.Join(misuse...); err != nil {
		return m, fmt.Errorf("Managed: %w", err)
	}
	return m, nil
}

// names returns the names of the certificate: those of the Service and Names.
func (m Managed) names() []string {
	host := m.Service + "." + m.Namespace
	return append([]string{host + ".svc", host + ".svc.cluster.local", host}, m.Names...)
}
