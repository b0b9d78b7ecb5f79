// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package kinds says which kinds a server serves and what they look like: the table
// of built-in kinds, the kinds that CRDs define, their schemas, versions and
// conversions, and the registry of all of them. A kind that is in a registry does
// not change; a changed CRD replaces it. The registry has a lock of its own, under
// which nothing is called. The package sees objects, schemas and defaults, and
// neither requests nor the store.
package kinds

import (
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

	"github.com/flyball-dev/flyball/simulate/internal/gotypes"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
)

// Kind is a kind as the server serves it, in one version.
type Kind struct {
	schema.GroupVersionKind
	Resource   string // its plural in paths
	Namespaced bool
	Defaults   map[string]any // filled in where an object that is read lacks them at its top level

	Builtin       bool // has a Go type, so protobuf too
	Place         int  // among the built-in kinds, from 1; 0: it is none of them
	Singular      string
	ShortNames    []string
	Categories    []string
	ListKind      string
	Verbs         []string // of the kind itself
	Subresources  []Subresource
	Status        bool        // has a status that only its subresource writes
	Scale         *scalePaths // nil: cannot be scaled
	Schema        object.Schema
	Unserved      bool   // objects may be stored in the version, and nobody may ask for it
	Warning       string // what who asks for the version is told; empty: nothing
	Family        *Family
	Managers      *ownership.FieldManagers
	ScaleManagers *ownership.FieldManagers // of the Scale of an object
	Selectable    []string                 // of a CRD: JSON paths of its selectableFields
	Digest        func() string            // of the schema
	// columns of a CRD's table; nil: what built-in kinds show, or the age.
	Columns []apiextensionsv1.CustomResourceColumnDefinition
	SchemaLife
}

// Family is one resource in all its versions.
type Family struct {
	Resource schema.GroupResource
	Versions []*Kind // the preferred one first
	Storage  *Kind   // the one the log holds
	// convert makes of an object of one version one of another. It is called
	// without the server's lock, and may take time. nil: only the apiVersion
	// changes.
	Convert func(obj *object.Object, from, to *Kind) (*object.Object, error)
	// asked: convert asks a webhook, and two answers can differ.
	Asked bool
	// definition is what a CRD defines; nil: no CRD does.
	Definition *definition
	Names      apiextensionsv1.CustomResourceDefinitionNames // that it has got
	// terminating: the CRD is being deleted, and nothing is created any more.
	// The registry's lock guards it.
	Terminating bool
}

// Subresource is what can be asked for below one object.
type Subresource struct {
	Name  string
	Kind  schema.GroupVersionKind // of what is sent and answered
	Verbs []string
}

// scalePaths are where a kind keeps what its scale subresource shows.
type scalePaths struct {
	Spec, Status, Selector []string
	Builtin                bool // the selector is an object, not a text
	PlainSelector          bool // that object is labels alone
}

func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// Held is the resource that the log holds the kind's objects under.
func (k *Kind) Held() schema.GroupResource {
	if k.Family == nil {
		return k.GroupResource()
	}
	return k.Family.Resource
}

// Path is where the server serves the kind's group and version.
func (k *Kind) Path() string { return GroupPath(k.GroupVersion()) }

func GroupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// subresource is the subresource of a name as built-in kinds have it.
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

// subresourceOf is the subresource of a name; nil: there is none.
func (k *Kind) subresourceOf(name string) *Subresource {
	for i := range k.Subresources {
		if k.Subresources[i].Name == name {
			return &k.Subresources[i]
		}
	}
	return nil
}

// Allows reports whether a verb can be asked for.
func (k *Kind) Allows(subresource, verb string) bool {
	if subresource == "" {
		return slices.Contains(k.Verbs, verb)
	}
	s := k.subresourceOf(subresource)
	return s != nil && slices.Contains(s.Verbs, verb)
}

// Completed is the kind with what it leaves out filled in.
func (k Kind) Completed() *Kind {
	if k.Resource == "" {
		k.Resource = strings.ToLower(k.Kind) + "s"
	}
	if k.Singular == "" {
		k.Singular = strings.ToLower(k.Kind)
	}
	if k.ListKind == "" {
		k.ListKind = k.Kind + "List"
	}
	if k.Verbs == nil {
		k.Verbs = split(allVerbs)
	}
	k.Builtin = gotypes.Scheme().Recognizes(k.GroupVersionKind)
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

// digestOf tells the schemas of kinds without a Go type apart.
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

// FamilyOf is the family of kinds that are the versions of one resource.
func FamilyOf(kinds ...*Kind) *Family {
	return &Family{Resource: kinds[0].GroupResource(), Versions: kinds, Storage: kinds[0]}
}

// Shown is obj as a reader sees it: with its kind and the defaults.
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

// SchemaLife is what has happened to the schema of a kind.
type SchemaLife struct {
	Changes int       // how often it has changed
	Publish time.Time // when the last change is published
	Oldest  int64     // where the history for watches begins, if after the server's
}

// Published counts the changes that are known at now.
func (l SchemaLife) Published(now time.Time) int {
	if now.Before(l.Publish) {
		return l.Changes - 1
	}
	return l.Changes
}

// ObjectOfTyped is a typed object as the server holds it.
func ObjectOfTyped(k *Kind, typed runtime.Object) (*object.Object, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = k.GroupVersion().String(), k.Kind
	return &object.Object{Fields: fields}, nil
}

// GoType is what Kubernetes calls a type of one version, goInternalType the one
// that all versions become.
func GoType(gvk schema.GroupVersionKind) string { return gvk.Version + "." + gvk.Kind }

func GoInternalType(gvk schema.GroupVersionKind) string {
	group, _, _ := strings.Cut(gvk.Group, ".")
	if group == "" {
		group = "core"
	}
	return group + "." + gvk.Kind
}
