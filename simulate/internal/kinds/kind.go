// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package kinds describes the kinds that a server serves: the table of built-in kinds, the
// kinds that CRDs define, their schemas, versions and conversions, and the registry of all
// of them. A kind in a registry does not change; a changed CRD replaces it. The registry
// has its own lock, and calls nothing while it holds it. The package sees objects, schemas
// and defaults, and neither requests nor the store.
package kinds

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
)

// Kind is a kind as the server serves it, in one version.
type Kind struct {
	schema.GroupVersionKind
	Resource   string // its plural in paths
	Namespaced bool
	Defaults   map[string]any // fills in missing top-level fields when an object is read

	Builtin       bool // it has a Go type, and so protobuf too
	Place         int  // among the built-in kinds, from 1; 0: not a built-in kind
	Singular      string
	ShortNames    []string
	Categories    []string
	ListKind      string
	Verbs         []string // of the kind itself
	Subresources  []Subresource
	Status        bool        // has a status that only its subresource writes
	Scale         *scalePaths // nil: cannot be scaled
	Schema        object.Schema
	Unserved      bool   // objects may be stored in this version, but it is not served
	Warning       string // for clients that use the version; empty: none
	Family        *Family
	Managers      *ownership.FieldManagers
	ScaleManagers *ownership.FieldManagers // of the Scale of an object
	Selectable    []string                 // of a CRD: JSON paths of its selectableFields
	Digest        func() string            // of the schema
	// Columns of a CRD's table; nil: those of built-in kinds, or the age.
	Columns []apiextensionsv1.CustomResourceColumnDefinition
	SchemaLife
}

// Family is one resource in all its versions.
type Family struct {
	Resource schema.GroupResource
	Versions []*Kind // the preferred one first
	Storage  *Kind   // the storage version
	// Convert converts an object from one version to another. It is called without the
	// server's lock and may take time. nil: only the apiVersion changes.
	Convert func(obj *object.Object, from, to *Kind) (*object.Object, error)
	// Asked means that Convert calls a webhook, whose answers can differ.
	Asked bool
	// Definition is the definition of the CRD; nil: no CRD defines the family.
	Definition *definition
	Names      apiextensionsv1.CustomResourceDefinitionNames // the accepted names
	// Terminating means that the CRD is being deleted and no objects can be created. The
	// registry's lock guards it.
	Terminating bool
}

// Subresource describes a subresource.
type Subresource struct {
	Name  string
	Kind  schema.GroupVersionKind // of the request and the answer
	Verbs []string
}

// scalePaths are the fields of a kind that its scale subresource shows.
type scalePaths struct {
	Spec, Status, Selector []string
	Builtin                bool // the selector is an object, not a text
	PlainSelector          bool // that object is labels alone
}

func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// Held returns the resource under which the kind's objects are stored.
func (k *Kind) Held() schema.GroupResource {
	if k.Family == nil {
		return k.GroupResource()
	}
	return k.Family.Resource
}

// Path returns the path of the kind's group and version.
func (k *Kind) Path() string { return GroupPath(k.GroupVersion()) }

func GroupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// subresource returns a subresource of built-in kinds.
func (k *Kind) subresource(name string) Subresource {
	s := Subresource{Name: name, Kind: k.GroupVersionKind, Verbs: []string{"get", "patch", "update"}}
	core := func(kind string) schema.GroupVersionKind { return schema.GroupVersionKind{Version: "v1", Kind: kind} }
	switch name {
	case "finalize":
		s.Verbs = []string{"update"}
	case "log":
		s.Verbs = []string{"get"}
	case "scale":
		s.Kind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	case "binding":
		s.Kind, s.Verbs = core("Binding"), []string{"create"}
	case "eviction":
		s.Kind, s.Verbs = schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}, []string{"create"}
	case "token":
		s.Kind, s.Verbs = schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"}, []string{"create"}
	case "attach", "exec", "portforward":
		words := map[string]string{"attach": "PodAttachOptions", "exec": "PodExecOptions", "portforward": "PodPortForwardOptions"}
		s.Kind, s.Verbs = core(words[name]), []string{"create", "get"}
	case "proxy":
		s.Kind, s.Verbs = core(k.Kind+"ProxyOptions"), []string{"create", "delete", "get", "patch", "update"}
	}
	return s
}

func (k *Kind) HasSubresource(name string) bool { return k.subresourceOf(name) != nil }

// subresourceOf returns the kind's subresource of a name, or nil if it has none.
func (k *Kind) subresourceOf(name string) *Subresource {
	for i := range k.Subresources {
		if k.Subresources[i].Name == name {
			return &k.Subresources[i]
		}
	}
	return nil
}

// Allows reports whether the kind or subresource has a verb.
func (k *Kind) Allows(subresource, verb string) bool {
	if subresource == "" {
		return slices.Contains(k.Verbs, verb)
	}
	s := k.subresourceOf(subresource)
	return s != nil && slices.Contains(s.Verbs, verb)
}

// Completed returns the kind with its omitted fields filled in.
func (k Kind) Completed() *Kind {
	k.Resource = cmp.Or(k.Resource, strings.ToLower(k.Kind)+"s")
	k.Singular = cmp.Or(k.Singular, strings.ToLower(k.Kind))
	k.ListKind = cmp.Or(k.ListKind, k.Kind+"List")
	if k.Verbs == nil {
		k.Verbs = split(allVerbs)
	}
	k.Builtin = models.Scheme().Recognizes(k.GroupVersionKind)
	if k.Managers == nil {
		k.Managers, k.ScaleManagers = ownership.NewFieldManagers(), ownership.NewFieldManagers()
	}
	switch {
	case k.Schema != nil || !k.Builtin:
	case k.GroupResource() == Definitions:
		k.Schema = definitionSchema{builtinSchema{&k}}
	default:
		k.Schema = builtinSchema{&k}
	}
	k.Digest = sync.OnceValue(func() string { return digestOf(k.Schema) })
	return &k
}

// digestOf identifies the schema of a kind without a Go type.
func digestOf(of object.Schema) string {
	if of == nil || of.OpenAPI() == nil {
		return ""
	}
	text, err := json.Marshal(of.OpenAPI())
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// FamilyOf returns the family of kinds that are the versions of one resource.
func FamilyOf(kinds ...*Kind) *Family {
	return &Family{Resource: kinds[0].GroupResource(), Versions: kinds, Storage: kinds[0]}
}

// Shown returns obj as clients see it: with its kind and the defaults.
func (k *Kind) Shown(obj *object.Object) *object.Object {
	missing := false
	for name := range k.Defaults {
		if _, ok := obj.Fields[name]; !ok {
			missing = true
		}
	}
	if !missing {
		return obj
	}
	obj = obj.Copy()
	for name, value := range k.Defaults {
		if _, ok := obj.Fields[name]; !ok {
			obj.Fields[name] = value
		}
	}
	return obj
}

// SchemaLife is the history of a kind's schema.
type SchemaLife struct {
	Changes int       // how often it has changed
	Publish time.Time // when the last change is published
	Oldest  int64     // the start of the history for watches, if later than the server's
}

// Published returns the number of changes that are visible at now.
func (l SchemaLife) Published(now time.Time) int {
	if now.Before(l.Publish) {
		return l.Changes - 1
	}
	return l.Changes
}

// ObjectOfTyped converts a typed object to the server's form.
func ObjectOfTyped(k *Kind, typed runtime.Object) (*object.Object, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = k.GroupVersion().String(), k.Kind
	return &object.Object{Fields: fields}, nil
}

// GoType returns the name that Kubernetes gives to the Go type of one version,
// goInternalType that of the internal type of all versions.
func GoType(gvk schema.GroupVersionKind) string { return gvk.Version + "." + gvk.Kind }

func GoInternalType(gvk schema.GroupVersionKind) string {
	group, _, _ := strings.Cut(gvk.Group, ".")
	group = cmp.Or(group, "core")
	return group + "." + gvk.Kind
}
