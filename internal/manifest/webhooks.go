// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds that configure webhooks.
const (
	Mutating   = "MutatingWebhookConfiguration"
	Validating = "ValidatingWebhookConfiguration"
	Definition = "CustomResourceDefinition"
)

// AdmissionGroup is the group of the two webhook configurations.
const AdmissionGroup = "admissionregistration.k8s.io"

// IsWebhookConfiguration reports whether an object configures admission
// webhooks.
func IsWebhookConfiguration(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind().GroupKind()
	return kind == schema.GroupKind{Group: AdmissionGroup, Kind: Mutating} ||
		kind == schema.GroupKind{Group: AdmissionGroup, Kind: Validating}
}

// Clients returns the clientConfig fields of the webhooks in a configuration or
// a CustomResourceDefinition. They are part of the object.
func Clients(object *unstructured.Unstructured) (all []map[string]any) {
	if object.GetKind() == Definition {
		if at, ok := within(object.Object, "spec", "conversion", "webhook", "clientConfig"); ok {
			all = append(all, at)
		}
		return all
	}
	if !IsWebhookConfiguration(object) {
		return nil
	}
	webhooks, _ := object.Object["webhooks"].([]any)
	for _, each := range webhooks {
		if webhook, ok := each.(map[string]any); ok {
			if at, ok := within(webhook, "clientConfig"); ok {
				all = append(all, at)
			}
		}
	}
	return all
}

// Service returns the Service of a clientConfig. ok is false if it has a URL.
func Service(client map[string]any) (namespace, name, path string, ok bool) {
	service, ok := within(client, "service")
	if !ok {
		return "", "", "", false
	}
	namespace, _ = service["namespace"].(string)
	name, _ = service["name"].(string)
	path, _ = service["path"].(string)
	return namespace, name, path, true
}

func within(fields map[string]any, path ...string) (map[string]any, bool) {
	for _, name := range path {
		next, ok := fields[name].(map[string]any)
		if !ok {
			return nil, false
		}
		fields = next
	}
	return fields, true
}
