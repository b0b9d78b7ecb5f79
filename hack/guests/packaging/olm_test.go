// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package packaging_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	"sigs.k8s.io/yaml"
)

// object is one to install.
type object = map[string]any

// valid reports what the validators of operator-sdk bundle validate say of a bundle.
func valid(t *testing.T, dir string) *manifests.Bundle {
	t.Helper()
	b, err := manifests.GetBundleFromDir(dir)
	must(t, err)
	checked := append(validation.DefaultBundleValidators.Validate(b), validation.OperatorHubV2Validator.Validate(b)...)
	checked = append(checked, validation.GoodPracticesValidator.Validate(b)...)
	for _, result := range checked {
		for _, problem := range result.Errors {
			t.Errorf("%s: %v", dir, problem)
		}
		for _, warning := range result.Warnings {
			t.Logf("%s: %v", dir, warning)
		}
	}
	return b
}

// mounted is where OLM mounts certificates.
const mounted = "/tmp/k8s-webhook-server/serving-certs"

// installed is a bundle that was installed, as OLM's deployment strategy does: it creates
// ServiceAccounts, roles of the permissions, Services and configurations of webhooks, and
// Deployments. OLM itself cannot be built from the module proxy. It grants the permissions in
// each namespace; here they hold in the operator's alone, which is less.
type installed struct {
	objects []object // in the order of installation
	mounts  map[string]string
}

// olm makes the objects of a bundle.
func olm(t *testing.T, b *manifests.Bundle, namespace string) *installed {
	t.Helper()
	out := &installed{mounts: map[string]string{}}
	add := func(apiVersion, kind, namespace, name string, more object) object {
		o := object{"apiVersion": apiVersion, "kind": kind, "metadata": object{"name": name}}
		if namespace != "" {
			o["metadata"].(object)["namespace"] = namespace
		}
		for key, value := range more {
			o[key] = plain(t, value)
		}
		out.objects = append(out.objects, o)
		return o
	}
	const rbac = "rbac.authorization.k8s.io"
	csv := b.CSV
	strategy := csv.Spec.InstallStrategy.StrategySpec
	add("v1", "Namespace", "", namespace, nil)
	accounts := map[string]bool{}
	grant := func(prefix string, p v1alpha1.StrategyDeploymentPermissions, binding, role, in string) {
		if !accounts[p.ServiceAccountName] {
			accounts[p.ServiceAccountName] = true
			add("v1", "ServiceAccount", namespace, p.ServiceAccountName, nil)
		}
		name := prefix + "-" + p.ServiceAccountName
		add(rbac+"/v1", role, in, name, object{"rules": p.Rules})
		add(rbac+"/v1", binding, in, name, object{
			"roleRef":  object{"apiGroup": rbac, "kind": role, "name": name},
			"subjects": []object{{"kind": "ServiceAccount", "name": p.ServiceAccountName, "namespace": namespace}},
		})
	}
	for _, p := range strategy.Permissions {
		grant(csv.Name, p, "RoleBinding", "Role", namespace)
	}
	for _, p := range strategy.ClusterPermissions {
		grant(csv.Name, p, "ClusterRoleBinding", "ClusterRole", "")
	}
	definitions := map[string]object{}
	for _, o := range b.Objects {
		switch o.GetKind() {
		case "ClusterServiceVersion":
			continue
		case "CustomResourceDefinition":
			definitions[o.GetName()] = o.Object
		case "ClusterRole", "ClusterRoleBinding":
		default:
			o.SetNamespace(namespace)
		}
		out.objects = append(out.objects, o.Object)
	}
	out.webhooks(t, csv, namespace, definitions, add)
	for _, d := range strategy.DeploymentSpecs {
		o := add("apps/v1", "Deployment", namespace, d.Name, object{"spec": d.Spec})
		o["metadata"].(object)["labels"] = plain(t, d.Label)
	}
	return out
}

// webhooks makes the Service of each Deployment with webhooks, its certificate, and the
// configurations.
func (i *installed) webhooks(t *testing.T, csv *v1alpha1.ClusterServiceVersion, namespace string, definitions map[string]object, add func(apiVersion, kind, namespace, name string, more object) object) {
	t.Helper()
	authorities := map[string][]byte{}
	for _, w := range csv.Spec.WebhookDefinitions {
		service := w.DomainName() + "-service"
		if authorities[service] == nil {
			dir := t.TempDir()
			authorities[service] = certificate(t, dir, service+"."+namespace+".svc")
			i.mounts[mounted] = dir
			for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
				if d.Name == w.DeploymentName {
					add("v1", "Service", namespace, service, object{"spec": object{
						"selector": d.Spec.Selector.MatchLabels, "ports": []object{{"port": w.ContainerPort, "targetPort": w.TargetPort}},
					}})
				}
			}
		}
		authority := authorities[service]
		switch w.Type {
		case v1alpha1.ValidatingAdmissionWebhook:
			add("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", w.GenerateName+"-x", object{"webhooks": []any{w.GetValidatingWebhook(namespace, nil, authority)}})
		case v1alpha1.MutatingAdmissionWebhook:
			add("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "", w.GenerateName+"-x", object{"webhooks": []any{w.GetMutatingWebhook(namespace, nil, authority)}})
		case v1alpha1.ConversionWebhook:
			for _, name := range w.ConversionCRDs {
				definitions[name]["spec"].(object)["conversion"] = plain(t, object{"strategy": "Webhook", "webhook": object{
					"conversionReviewVersions": w.AdmissionReviewVersions,
					"clientConfig": object{"caBundle": authority, "service": object{
						"namespace": namespace, "name": service, "path": w.WebhookPath, "port": w.ContainerPort,
					}},
				}})
			}
		}
	}
}

// plain returns a value as JSON has it.
func plain(t *testing.T, value any) (out any) {
	t.Helper()
	text, err := json.Marshal(value)
	must(t, err)
	must(t, json.Unmarshal(text, &out))
	return out
}

// file writes the objects into a file.
func (i *installed) file(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, o := range i.objects {
		text, err := yaml.Marshal(o)
		must(t, err)
		fmt.Fprintf(&all, "---\n%s", text)
	}
	file := filepath.Join(t.TempDir(), "installed.yaml")
	must(t, os.WriteFile(file, []byte(all.String()), 0o600))
	return file
}

// certificate writes tls.crt and tls.key for a name, and returns the authority's certificate.
func certificate(t *testing.T, dir, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), text, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return text
}
