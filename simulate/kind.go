// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/gotypes"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Kind is one that the server serves, in one version.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its plural in paths. Empty: the kind in lower case with an s.
	Resource string
	// Namespaced: its objects live in namespaces.
	Namespaced bool
	// Defaults are filled in where an object that is read lacks them at its top
	// level, as the defaults of a CRD's schema are: without a new
	// resourceVersion. nil: none.
	Defaults map[string]any

	builtin       bool // has a Go type, so protobuf too
	place         int  // among the built-in kinds, from 1; 0: it is none of them
	singular      string
	shortNames    []string
	categories    []string
	listKind      string
	verbs         []string // of the kind itself
	subresources  []subresource
	status        bool        // has a status that only its subresource writes
	scale         *scalePaths // nil: cannot be scaled
	schema        object.Schema
	unserved      bool   // objects may be stored in the version, and nobody may ask for it
	warning       string // what who asks for the version is told; empty: nothing
	family        *family
	managers      *fieldManagers
	scaleManagers *fieldManagers // of the Scale of an object
	selectable    []string       // of a CRD: JSON paths of its selectableFields
	digest        func() string  // of the schema
	// columns of a CRD's table; nil: what built-in kinds show, or the age.
	columns []apiextensionsv1.CustomResourceColumnDefinition
	schemaLife
}

// family is one resource in all its versions.
type family struct {
	resource schema.GroupResource
	versions []*Kind // the preferred one first
	storage  *Kind   // the one the log holds
	// convert makes of an object of one version one of another. It is called
	// without the server's lock, and may take time. nil: only the apiVersion
	// changes.
	convert func(obj *object.Object, from, to *Kind) (*object.Object, error)
	// asked: convert asks a webhook, and two answers can differ.
	asked bool
	// definition is what a CRD defines; nil: no CRD does.
	definition *definition
	names      apiextensionsv1.CustomResourceDefinitionNames // that it has got
	// terminating: the CRD is being deleted, and nothing is created any more.
	// The server's lock guards it.
	terminating bool
}

// subresource is what can be asked for below one object.
type subresource struct {
	name  string
	kind  schema.GroupVersionKind // of what is sent and answered
	verbs []string
}

// scalePaths are where a kind keeps what its scale subresource shows.
type scalePaths struct {
	spec, status, selector []string
	builtin                bool // the selector is an object, not a text
	plainSelector          bool // that object is labels alone
}

func (k *Kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// held is the resource that the log holds the kind's objects under.
func (k *Kind) held() schema.GroupResource {
	if k.family == nil {
		return k.resource()
	}
	return k.family.resource
}

// path is where the server serves the kind's group and version.
func (k *Kind) path() string { return groupPath(k.GroupVersion()) }

func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// subresource is the subresource of a name as built-in kinds have it.
func (k *Kind) subresource(name string) subresource {
	s := subresource{name: name, kind: k.GroupVersionKind, verbs: []string{"get", "patch", "update"}}
	core := func(kind string) schema.GroupVersionKind { return schema.GroupVersionKind{Version: "v1", Kind: kind} }
	switch name {
	case "finalize":
		s.verbs = []string{"update"}
	case "log":
		s.verbs = []string{"get"}
	case "scale":
		s.kind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	case "binding":
		s.kind, s.verbs = core("Binding"), []string{"create"}
	case "eviction":
		s.kind, s.verbs = schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}, []string{"create"}
	case "token":
		s.kind, s.verbs = schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"}, []string{"create"}
	case "attach", "exec", "portforward":
		words := map[string]string{"attach": "PodAttachOptions", "exec": "PodExecOptions", "portforward": "PodPortForwardOptions"}
		s.kind, s.verbs = core(words[name]), []string{"create", "get"}
	case "proxy":
		s.kind, s.verbs = core(k.Kind+"ProxyOptions"), []string{"create", "delete", "get", "patch", "update"}
	}
	return s
}

func (k *Kind) hasSubresource(name string) bool { return k.subresourceOf(name) != nil }

// subresourceOf is the subresource of a name; nil: there is none.
func (k *Kind) subresourceOf(name string) *subresource {
	for i := range k.subresources {
		if k.subresources[i].name == name {
			return &k.subresources[i]
		}
	}
	return nil
}

// allows reports whether a verb can be asked for.
func (k *Kind) allows(subresource, verb string) bool {
	if subresource == "" {
		return slices.Contains(k.verbs, verb)
	}
	s := k.subresourceOf(subresource)
	return s != nil && slices.Contains(s.verbs, verb)
}

// completed is the kind with what it leaves out filled in.
func (k Kind) completed() *Kind {
	if k.Resource == "" {
		k.Resource = strings.ToLower(k.Kind) + "s"
	}
	if k.singular == "" {
		k.singular = strings.ToLower(k.Kind)
	}
	if k.listKind == "" {
		k.listKind = k.Kind + "List"
	}
	if k.verbs == nil {
		k.verbs = split(allVerbs)
	}
	k.builtin = gotypes.Scheme().Recognizes(k.GroupVersionKind)
	if k.managers == nil {
		k.managers, k.scaleManagers = newFieldManagers(), newFieldManagers()
	}
	switch {
	case k.schema != nil || !k.builtin:
	case k.resource() == definitions:
		k.schema = definitionSchema{builtinSchema{&k}}
	default:
		k.schema = builtinSchema{&k}
	}
	k.digest = sync.OnceValue(func() string { return digestOf(k.schema) })
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

// installLocked serves kinds as the versions of one resource, in place of those
// that were there. The first is preferred; storage is the one that is held.
func (s *Server) installLocked(f *family) {
	s.removeFamilyLocked(f.resource)
	s.mu.families[f.resource] = f
	for _, k := range f.versions {
		k.family = f
		if !k.unserved {
			s.mu.kinds[k.GroupVersionKind] = k
		}
	}
}

func (s *Server) removeFamilyLocked(r schema.GroupResource) {
	old := s.mu.families[r]
	if old == nil {
		return
	}
	for _, k := range old.versions {
		delete(s.mu.kinds, k.GroupVersionKind)
	}
	delete(s.mu.families, r)
}

// familyOf is the family of kinds that are the versions of one resource.
func familyOf(kinds ...*Kind) *family {
	return &family{resource: kinds[0].resource(), versions: kinds, storage: kinds[0]}
}

// shown is obj as a reader sees it: with its kind and the defaults.
func (k *Kind) shown(obj *object.Object) *object.Object {
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
