// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/manifest"
)

// certify creates a certificate for the webhooks of all processes, and sets it in
// configurations and CRDs, as cert-manager does in a cluster. It does nothing for a
// program that creates its own certificate or has a directory with one.
func (cfg *Config) certify(now time.Time, t interface{ TempDir() string }) error {
	var clients []map[string]any
	for _, object := range slices.Concat(cfg.webhooks, cfg.definitions) {
		clients = append(clients, manifest.Clients(object)...)
	}
	if len(clients) == 0 || cfg.Manager.Webhooks.Managed != nil || cfg.Manager.Webhooks.CertDir != "" {
		return nil
	}
	var names []string
	for _, client := range clients {
		if namespace, name, _, ok := manifest.Service(client); ok {
			names = append(names, name+"."+namespace+".svc")
		} else if at, _ := client["url"].(string); at != "" {
			if u, err := url.Parse(at); err == nil {
				names = append(names, u.Hostname())
			}
		}
	}
	signer, err := keypair.NewAuthority(now, "simulated")
	if err != nil {
		return err
	}
	pair, err := signer.Server(now, names...)
	if err != nil {
		return err
	}
	dir := t.TempDir()
	for file, text := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			return err
		}
	}
	cfg.Manager.Webhooks.CertDir = dir
	for _, client := range clients {
		if have, _ := client["caBundle"].(string); have == "" {
			client["caBundle"] = base64.StdEncoding.EncodeToString(signer.PEM)
		}
	}
	return nil
}

func (cfg Config) converted() (kinds []string) {
	for _, crd := range cfg.definitions {
		if len(manifest.Clients(crd)) > 0 {
			group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
			kinds = append(kinds, kind+"."+group)
		}
	}
	return kinds
}

func copies(of []*unstructured.Unstructured) (out []*unstructured.Unstructured) {
	for _, object := range of {
		out = append(out, object.DeepCopy())
	}
	return out
}
