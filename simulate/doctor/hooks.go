// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/localserver"
	"github.com/flyball-dev/flyball/internal/manifest"
)

// hooks are webhooks that the program serves itself.
type hooks struct {
	configurations []*unstructured.Unstructured
	port           int  // 0: a free one in each run
	wanted         bool // the program is told its port, or has a fixed one
}

// served is how the webhooks of one run are reached.
type served struct {
	address   string
	manifests []byte
	places    []string // in arguments, each with what stands there
}

// serve makes a certificate for the webhooks, which the configurations and the definitions then trust. It writes it
// into a directory, for the program.
func (h hooks) serve(dir string, definitions []*unstructured.Unstructured) (s served, err error) {
	converts := func(definition *unstructured.Unstructured) bool { return len(manifest.Clients(definition)) > 0 }
	if len(h.configurations) == 0 && !h.wanted && !slices.ContainsFunc(definitions, converts) {
		return s, nil
	}
	port := h.port
	if port == 0 {
		if port, err = localserver.FreePort(); err != nil {
			return s, err
		}
	}
	now := time.Now()
	authority, err := keypair.NewAuthority(now, "doctor")
	if err != nil {
		return s, err
	}
	var names []string
	trusted := base64.StdEncoding.EncodeToString(authority.PEM)
	trust := func(all []*unstructured.Unstructured) {
		for _, obj := range all {
			for _, client := range manifest.Clients(obj) {
				client["caBundle"] = trusted
				names = append(names, hostOf(client))
			}
		}
	}
	trust(definitions)
	for _, obj := range h.configurations {
		configuration := obj.DeepCopy()
		trust([]*unstructured.Unstructured{configuration})
		text, err := json.Marshal(configuration)
		if err != nil {
			return s, err
		}
		s.manifests = append(append(s.manifests, text...), "\n---\n"...)
	}
	certificate, err := authority.Server(now, names...)
	if err != nil {
		return s, err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate.Cert, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), certificate.Key, 0o600)); err != nil {
		return s, fmt.Errorf("write the certificate of the webhooks: %w", err)
	}
	s.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s.places = []string{"{webhook-port}", strconv.Itoa(port), "{webhook-certs}", dir}
	return s, nil
}

// hostOf returns the name that the certificate of a webhook is verified for.
func hostOf(client map[string]any) string {
	if namespace, name, _, ok := manifest.Service(client); ok {
		return name + "." + namespace + ".svc"
	}
	text, _ := client["url"].(string)
	at, err := url.Parse(text)
	if err != nil {
		return "localhost" // the server refuses the configuration
	}
	return at.Hostname()
}
