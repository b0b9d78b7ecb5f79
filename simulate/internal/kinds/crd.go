// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
)

// Definitions is the resource of CRDs.
var Definitions = apiextensionsv1.Resource("customresourcedefinitions")

// definition is the compiled spec of a CRD. It is immutable, so servers can share it.
type definition struct {
	Key      [sha256.Size]byte // of the spec
	Spec     apiextensionsv1.CustomResourceDefinitionSpec
	versions []apiextensionsv1.CustomResourceDefinitionVersion // the preferred one first
	schemas  map[string]*customSchema                          // by version
}

// CompileDefinition compiles a spec, or returns it from the cache. Compiling takes
// milliseconds.
func CompileDefinition(s *apiextensionsv1.CustomResourceDefinitionSpec) (*definition, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(text)
	if known := compiled.get(key); known != nil {
		return known, nil
	}
	d := &definition{Key: key, Spec: *s.DeepCopy(), schemas: map[string]*customSchema{}}
	d.versions = slices.Clone(d.Spec.Versions)
	slices.SortStableFunc(d.versions, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int {
		return version.CompareKubeAwareVersionStrings(b.Name, a.Name)
	})
	documents := map[string]*spec.Schema{}
	types := sync.OnceValue(func() managedfields.TypeConverter { return models.ConverterOf(documents) })
	for i := range d.versions {
		v := &d.versions[i]
		made, err := d.compile(v)
		if err != nil {
			return nil, fmt.Errorf("compile the schema of version %s: %w", v.Name, err)
		}
		made.types = types
		if d.Spec.Conversion == nil || d.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
			made.managers, made.scaleManagers = ownership.NewFieldManagers(), ownership.NewFieldManagers()
		}
		gvk := d.kind(v.Name)
		made.document = models.ModelOf(gvk, made.structural)
		documents[models.CustomModel(gvk)] = made.document
		d.schemas[v.Name] = made
	}
	compiled.put(d)
	return d, nil
}

func (d *definition) kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Spec.Group, Version: version, Kind: d.Spec.Names.Kind}
}

func (d *definition) compile(v *apiextensionsv1.CustomResourceDefinitionVersion) (*customSchema, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil || d.Spec.PreserveUnknownFields {
		return nil, fmt.Errorf("it has no structural schema")
	}
	var in apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema, &in, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(in.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	structural = structural.DeepCopy() // it shares defaults
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	made := &customSchema{structural: structural}
	if made.whole, _, err = apiservervalidation.NewSchemaValidator(in.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	made.rules = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	if v.Subresources == nil {
		return made, nil
	}
	if status, ok := in.OpenAPIV3Schema.Properties["status"]; ok && v.Subresources.Status != nil {
		if made.status, _, err = apiservervalidation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	if v.Subresources.Scale != nil {
		made.scale = &apiextensions.CustomResourceSubresourceScale{}
		err = apiextensionsv1.Convert_v1_CustomResourceSubresourceScale_To_apiextensions_CustomResourceSubresourceScale(v.Subresources.Scale, made.scale, nil)
	}
	return made, err
}

// compiled caches the last compiled definitions for all servers of the process: a test
// starts many with the same CRDs.
var compiled definitionCache

// keptDefinitions is the capacity of the cache.
const keptDefinitions = 256

type definitionCache struct {
	mu struct {
		sync.Mutex
		of    map[[sha256.Size]byte]*definition
		order [][sha256.Size]byte // the oldest first
	}
}

func (c *definitionCache) get(key [sha256.Size]byte) *definition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.of[key]
}

func (c *definitionCache) put(d *definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.of == nil {
		c.mu.of = map[[sha256.Size]byte]*definition{}
	}
	if c.mu.of[d.Key] == nil {
		c.mu.order = append(c.mu.order, d.Key)
	}
	c.mu.of[d.Key] = d
	if len(c.mu.order) > keptDefinitions {
		delete(c.mu.of, c.mu.order[0])
		c.mu.order = slices.Delete(c.mu.order, 0, 1)
	}
}
