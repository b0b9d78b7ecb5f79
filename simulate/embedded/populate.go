// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

func populate(ctx context.Context, cfg *rest.Config, crds []runtime.Object) error {
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for i, crd := range crds {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return fmt.Errorf("read a CRD of type %T: %w", crd, err)
		}
		definition := &unstructured.Unstructured{Object: fields}
		options := metav1.ApplyOptions{FieldManager: "embedded", Force: true}
		if _, err := definitions.Apply(ctx, definition.GetName(), definition, options); err != nil {
			return &DefinitionError{Index: i, Name: definition.GetName(), Err: err}
		}
	}
	return nil
}
