// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// DefinitionError is the server's refusal of a CRD.
type DefinitionError struct {
	// Index in Options.CRDs.
	Index int
	// Name of the CRD.
	Name string
	// Err is the server's answer.
	Err error
}

func (e *DefinitionError) Error() string { return fmt.Sprintf("install the CRD %q: %v", e.Name, e.Err) }

// Unwrap returns Err.
func (e *DefinitionError) Unwrap() error { return e.Err }

// owner is the field manager of what is applied.
var owner = metav1.ApplyOptions{FieldManager: "embedded", Force: true}

func populate(ctx context.Context, cfg *rest.Config, opts Options) error {
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	if err := install(ctx, client, opts.CRDs); err != nil {
		return err
	}
	return configure(ctx, client, opts.Manifests, opts.WebhookAddress != "")
}

func install(ctx context.Context, client dynamic.Interface, crds []runtime.Object) error {
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for i, crd := range crds {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return fmt.Errorf("read a CRD of type %T: %w", crd, err)
		}
		definition := &unstructured.Unstructured{Object: fields}
		if _, err := definitions.Apply(ctx, definition.GetName(), definition, owner); err != nil {
			return &DefinitionError{Index: i, Name: definition.GetName(), Err: err}
		}
	}
	return nil
}

// forWebhooks are the kinds of Options.Manifests that webhooks need: what calls them, and where
// the Secret of their certificate is.
var forWebhooks = map[string]schema.GroupVersionResource{
	"Namespace":                      {Version: "v1", Resource: "namespaces"},
	"MutatingWebhookConfiguration":   {Group: admission, Version: "v1", Resource: "mutatingwebhookconfigurations"},
	"ValidatingWebhookConfiguration": {Group: admission, Version: "v1", Resource: "validatingwebhookconfigurations"},
}

const admission = "admissionregistration.k8s.io"

// configure applies what webhooks need, or deletes the configurations of webhooks that are not
// served.
func configure(ctx context.Context, client dynamic.Interface, manifests []byte, served bool) error {
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		var obj unstructured.Unstructured
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the manifests: %w", err)
		}
		resource, needed := forWebhooks[obj.GetKind()]
		switch {
		case !needed:
		case served:
			_, err = client.Resource(resource).Apply(ctx, obj.GetName(), &obj, owner)
		case resource.Group == admission:
			err = client.Resource(resource).Delete(ctx, obj.GetName(), metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("configure webhooks: %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
}
