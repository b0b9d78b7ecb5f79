// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"k8s.io/kube-openapi/pkg/schemamutation"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// old returns the document as OpenAPI v2, which has no alternatives, defaults or nulls.
func (d *document) old() *spec.Swagger {
	out := d.swagger()
	out.Definitions = spec.Definitions{}
	for name, schema := range d.types.Out {
		out.Definitions[name] = *oldSchema(&schema)
	}
	out.Security = []map[string][]string{{"BearerToken": {}}}
	for _, item := range out.Paths.Paths {
		for _, op := range []*spec.Operation{item.Get, item.Put, item.Post, item.Patch, item.Delete} {
			if op != nil {
				op.Schemes = []string{"https"}
			}
		}
	}
	return out
}

func oldSchema(schema *spec.Schema) *spec.Schema {
	walker := schemamutation.Walker{RefCallback: schemamutation.RefCallbackNoop, SchemaCallback: func(schema *spec.Schema) *spec.Schema {
		of := *schema
		of.Default, of.Not, of.Nullable = nil, nil, false
		if len(of.OneOf) > 0 && len(of.Type) == 0 {
			of.Type = spec.StringOrArray{"string"} // a value with several forms, as Quantity
		}
		if len(of.Type) > 1 {
			of.Type = of.Type[:1]
		}
		of.OneOf, of.AnyOf = nil, nil
		if of.Extensions["x-kubernetes-v2-schema"] != nil {
			of.Extensions = nil
		}
		return &of
	}}
	return walker.WalkSchema(schema)
}
