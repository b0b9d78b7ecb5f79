// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// certificates is where OLM mounts the certificate of webhooks.
const certificates = "/tmp/k8s-webhook-server/serving-certs"

const certFlag = "-webhook-cert-path"

// serving is what answers a webhook.
type serving struct {
	deployment Object
	service    Object
	port       int64
	target     any
	path       string
}

// findWebhooks describes webhooks to OLM, which makes their Services, configurations and
// certificates.
func (m *bundle) findWebhooks() error {
	var problems []error
	ports := map[string][]int64{} // of Services that webhooks have used
	add := func(of string, config map[string]any, fields map[string]any) {
		s, err := m.serving(config)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", of, err))
			return
		}
		fields["deploymentName"], fields["containerPort"], fields["targetPort"], fields["webhookPath"] = s.deployment.Name(), s.port, s.target, s.path
		m.webhooks = append(m.webhooks, fields)
		ports[s.service.String()] = append(ports[s.service.String()], s.port)
		m.mountsCertificates(s)
	}
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		for _, o := range m.base.Of(Admission, kind) {
			m.consumed[o.String()] = true
			for _, hook := range Maps(o, "webhooks") {
				of := fmt.Sprintf("the webhook %s of %s", String(hook, "name"), o)
				fields := map[string]any{"type": strings.TrimSuffix(kind, "WebhookConfiguration") + "AdmissionWebhook", "generateName": String(hook, "name")}
				for key, value := range hook {
					switch key {
					case "rules", "failurePolicy", "matchPolicy", "objectSelector", "sideEffects", "timeoutSeconds", "admissionReviewVersions", "reinvocationPolicy":
						fields[key] = value
					case "name", "clientConfig":
					default:
						problems = append(problems, fmt.Errorf("%s has %s, which OLM cannot set, so that the webhook would be called for more than it is for; remove it, such as in a kustomize overlay, or use objectSelector", of, key))
					}
				}
				add(of, Map(hook, "clientConfig"), fields)
			}
		}
	}
	for _, o := range m.base.Of(Extensions, "CustomResourceDefinition") {
		conversion := Map(o, "spec", "conversion")
		if String(conversion, "strategy") != "Webhook" {
			continue
		}
		add("the conversion webhook of "+o.String(), Map(conversion, "webhook", "clientConfig"), map[string]any{
			"type": "ConversionWebhook", "generateName": "convert." + o.Name(), "sideEffects": "None",
			"admissionReviewVersions": List(conversion, "webhook", "conversionReviewVersions"), "conversionCRDs": []any{o.Name()},
		})
	}
	for _, o := range m.base.Of(Core, "Service") {
		used := ports[o.String()]
		if len(used) > 0 && !slices.ContainsFunc(Maps(o, "spec", "ports"), func(p Object) bool { return !slices.Contains(used, integer(p["port"])) }) {
			m.consumed[o.String()] = true
		}
	}
	return errors.Join(problems...)
}

// serving finds what answers a webhook.
func (m *bundle) serving(config map[string]any) (s serving, err error) {
	reference := Map(config, "service")
	if reference == nil {
		return s, errors.New("its clientConfig names no service, and OLM calls only its own; name the operator's Service")
	}
	for _, o := range m.base.Of(Core, "Service") {
		if o.Name() == String(reference, "name") && o.Namespace() == String(reference, "namespace") {
			s.service = o
		}
	}
	if s.service == nil {
		return s, fmt.Errorf("the base has no Service %s/%s; add it", String(reference, "namespace"), String(reference, "name"))
	}
	s.port, s.path = 443, String(reference, "path")
	if port, given := reference["port"]; given {
		s.port = integer(port)
	}
	for _, port := range Maps(s.service, "spec", "ports") {
		if integer(port["port"]) == s.port {
			s.target = port["targetPort"]
			if s.target == nil {
				s.target = port["port"]
			}
		}
	}
	if s.target == nil {
		return s, fmt.Errorf("%s has no port %d; add it", s.service, s.port)
	}
	selector := Map(s.service, "spec", "selector")
	for _, d := range m.base.Of(Apps, "Deployment") {
		if selects(selector, Map(d, "spec", "template", "metadata", "labels")) {
			s.deployment = d
		}
	}
	if s.deployment == nil {
		return s, fmt.Errorf("%s selects the Pods of no Deployment of the base; compare the labels", s.service)
	}
	return s, nil
}

func selects(selector, labels map[string]any) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// mountsCertificates makes the operator use OLM's certificates instead of its own.
func (m *bundle) mountsCertificates(s serving) {
	containers := Maps(s.deployment, "spec", "template", "spec", "containers")
	container := containers[0]
	for _, c := range containers {
		for _, port := range Maps(c, "ports") {
			if port["name"] == s.target || port["containerPort"] == s.target {
				container = c
			}
		}
	}
	for _, arg := range Strings(container, "args") {
		if strings.HasPrefix(strings.TrimPrefix(arg, "-"), certFlag[1:]) || strings.HasPrefix(arg, certFlag) {
			return
		}
	}
	container["args"] = append(List(container, "args"), certFlag+"="+certificates)
}

// integer returns a whole number of JSON, or 0.
func integer(value any) int64 {
	if number, ok := value.(json.Number); ok {
		n, err := number.Int64()
		if err == nil {
			return n
		}
	}
	return 0
}
