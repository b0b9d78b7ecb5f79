// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"

	kjson "sigs.k8s.io/json"
)

// target is one object whose webhooks must trust the bundle.
type target struct {
	kind string // for messages
	path string // in the API
	name string
}

func (t target) String() string { return t.kind + " " + t.name }

// targets returns the targets of m in a fixed order.
func (m Managed) targets() []target {
	var out []target
	add := func(kind, path string, names []string) {
		for _, name := range names {
			out = append(out, target{kind, path + "/" + name, name})
		}
	}
	add("ValidatingWebhookConfiguration", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", m.Validating)
	add("MutatingWebhookConfiguration", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", m.Mutating)
	add("CustomResourceDefinition", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", m.CRDs)
	return out
}

// configured holds the fields read from a webhook configuration or a CRD.
type configured struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Webhooks []struct {
		ClientConfig reached `json:"clientConfig"`
	} `json:"webhooks"`
	Spec struct {
		Conversion struct {
			Webhook *struct {
				ClientConfig *reached `json:"clientConfig"`
			} `json:"webhook"`
		} `json:"conversion"`
	} `json:"spec"`
}

// reached is how the server reaches a webhook.
type reached struct {
	URL     string `json:"url"`
	Service *struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"service"`
	CABundle string `json:"caBundle"`
}

// leadsTo reports whether the webhook leads to the server that m describes.
func (r reached) leadsTo(m Managed) bool {
	if r.Service != nil {
		return r.Service.Namespace == m.Namespace && r.Service.Name == m.Service
	}
	to, err := url.Parse(r.URL)
	if err != nil || to.Host == "" {
		return false
	}
	ip := net.ParseIP(to.Hostname())
	return slices.ContainsFunc(m.names(), func(name string) bool {
		return name == to.Hostname() || ip != nil && ip.Equal(net.ParseIP(name))
	})
}

// errElsewhere: the target must be corrected, or left out of Managed.
var errElsewhere = errors.New("none of its webhooks leads to")

// injection returns the patch that sets the bundle in the object raw; empty if it is
// set. The patch changes only the caBundle fields of this server's webhooks, and fails
// if the object has changed since it was read.
func injection(raw []byte, m Managed, bundle []byte) (operations, error) {
	var found configured
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &found); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	var ops operations
	ours := 0
	want := base64.StdEncoding.EncodeToString(bundle)
	put := func(path string, r reached) {
		if !r.leadsTo(m) {
			return
		}
		ours++
		if r.CABundle != want {
			ops.add("add", path+"/caBundle", want)
		}
	}
	for i, hook := range found.Webhooks {
		put(fmt.Sprintf("/webhooks/%d/clientConfig", i), hook.ClientConfig)
	}
	if webhook := found.Spec.Conversion.Webhook; webhook != nil && webhook.ClientConfig != nil {
		put("/spec/conversion/webhook/clientConfig", *webhook.ClientConfig)
	}
	if ours == 0 {
		return nil, fmt.Errorf("%w the Service %s/%s, or to a URL of Names", errElsewhere, m.Namespace, m.Service)
	}
	if len(ops) > 0 {
		condition := operation{"replace", "/metadata/resourceVersion", found.Metadata.ResourceVersion}
		ops = append(operations{condition}, ops...)
	}
	return ops, nil
}
