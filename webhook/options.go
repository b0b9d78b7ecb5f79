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

// What Options are where they say nothing.
const (
	DefaultAddress    = ":9443"
	DefaultDrainDelay = 10 * time.Second
)

// DefaultCertDir is the directory of Options.CertDir where that is empty:
// k8s-webhook-server/serving-certs, in a Pod in the directory for temporary files, where
// kubebuilder's manifests have the certificates mounted, and elsewhere in the user's own
// directory for caches, since other users of a machine can write to /tmp. What is there
// and belongs to another user than root or this process's is not served.
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

// Options of a Server. The zero value is fit for production where another program,
// such as cert-manager, puts a certificate into the pod.
type Options struct {
	// Address to serve on. Empty: ":9443".
	Address string
	// CertDir has tls.crt and tls.key, as a mounted Secret of type kubernetes.io/tls
	// does. They are read again every few seconds. Empty: DefaultCertDir.
	CertDir string
	// Managed has the server make and renew its certificates itself. Nil: they come
	// from CertDir.
	Managed *Managed
	// DrainDelay is how long new requests are answered after a stop has begun:
	// the time that a Service's other side needs to learn that this pod is going.
	// 0: 10 seconds. Below 0: none.
	DrainDelay time.Duration
	// MaxBody is the size of the largest body that is read, in bytes; sixteen times as
	// much is read at once. 0: 3 MiB, which is two objects of the largest size that
	// etcd takes as a server configures it (1.5 MiB), since the review of an update has
	// the object as it is and as it is to be; and 64 KiB for what else a review says.
	// A server whose etcd takes more needs more here.
	MaxBody int64
	// MaxDecoded is how much memory decoding one review may allocate, in bytes. It is
	// estimated before anything is decoded, from the review and the Go type; a review
	// beyond it is answered with 413. Reviews of more than an eighth of it are
	// answered one at a time, and the others share as much again. 0: 192 MiB, or 16
	// times MaxBody if that is more.
	MaxDecoded int64
	// ClientCAs sign the certificate that an API server shows when it calls the
	// webhooks of Validate and Mutate; a request without one is answered with 401. An
	// API server shows none unless it is configured to, and never when it asks for a
	// conversion, so conversions are answered without: see docs/webhooks.md for what
	// each distribution can do. Nil: whoever reaches the port is answered.
	ClientCAs *x509.CertPool
	// ClientNames are those that the certificate may be made for: its common name, or
	// one of its DNS names. Empty: any that ClientCAs have signed. The authority of a
	// cluster signs certificates of kubelets and users too, so name the API server's.
	ClientNames []string
	// TLS may change how is served.
	// It is called once, by Run. Nil: TLS 1.2 or newer.
	TLS func(*tls.Config)
	// Logger of the server. Zero: that of the context of Run.
	Logger logr.Logger
}

// Managed says what a server that makes its own certificates needs to know.
//
// It needs the rights to get, create and update the Secret, and to get and patch
// each configuration and CRD by its name.
type Managed struct {
	// Namespace of the Secret and of the Service. Empty is an error here; a manager
	// fills in the pod's own.
	Namespace string
	// Service by which the API server reaches the webhooks.
	Service string
	// Secret that the replicas share. It is created when it is not there. Empty: the
	// name of the Service and "-webhook-cert". Who can read it can pass for the
	// webhooks.
	Secret string
	// Names that the certificate is good for beside those of the Service: DNS names
	// and IP addresses, for a server that is reached by a URL.
	Names []string
	// Validating and Mutating are the names of webhook configurations, and CRDs
	// those of CustomResourceDefinitions. Each of their webhooks that leads to the
	// Service, or to a URL of Names, is given the authority to trust. One that does
	// not exist yet is given it when it does.
	Validating, Mutating, CRDs []string
	// Lifetime of a certificate. It is renewed when a third is left. 0: 90 days.
	Lifetime time.Duration
	// AuthorityLifetime is that of the authority that signs it. 0: a year.
	AuthorityLifetime time.Duration
}

// complete fills in what has been left out and returns the misuse it finds.
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
		misuse = append(misuse, errors.New("ClientNames are given without ClientCAs; a name counts where an authority vouches for it"))
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
			misuse = append(misuse, errors.New("Namespace is not set, and this process does not run in a Pod; "+
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
		misuse = append(misuse, fmt.Errorf("AuthorityLifetime is %v and Lifetime %v: what it signs is to end before it does; write %v or more, or leave it out",
			m.AuthorityLifetime, m.Lifetime, 3*m.Lifetime))
	}
	if err := errors.Join(misuse...); err != nil {
		return m, fmt.Errorf("Managed: %w", err)
	}
	return m, nil
}

// names that a certificate is made for: those by which a Service is called.
func (m Managed) names() []string {
	host := m.Service + "." + m.Namespace
	return append([]string{host + ".svc", host + ".svc.cluster.local", host}, m.Names...)
}
