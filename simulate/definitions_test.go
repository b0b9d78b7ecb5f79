// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// shelf is a store of CRDs alone.
type shelf struct {
	*definitionController
	crds     map[types.NamespacedName]*object.Object
	revision int64
	ended    int
}

func (s *shelf) Get(_ schema.GroupResource, key types.NamespacedName) *object.Object {
	return s.crds[key]
}

func (s *shelf) List(r schema.GroupResource) (out []*object.Object) {
	for _, obj := range s.crds {
		if r == kinds.Definitions {
			out = append(out, obj)
		}
	}
	slices.SortFunc(out, func(a, b *object.Object) int { return slices.Compare([]rune(a.Key().Name), []rune(b.Key().Name)) })
	return out
}
func (s *shelf) Count(schema.GroupResource) int  { return 0 }
func (s *shelf) Revision() int64                 { return s.revision }
func (s *shelf) EndWatches(schema.GroupResource) { s.ended++ }

func (s *shelf) Put(r schema.GroupResource, obj *object.Object) *object.Object {
	s.revision++
	before, next := s.crds[obj.Key()], obj.At(s.revision)
	s.crds[obj.Key()] = next
	s.After(s, revisions.Change{Revision: s.revision, Resource: r, Key: obj.Key(), Before: before, After: next})
	return s.crds[obj.Key()]
}

func (s *shelf) Remove(r schema.GroupResource, key types.NamespacedName) *object.Object {
	s.revision++
	before := s.crds[key]
	delete(s.crds, key)
	s.After(s, revisions.Change{Revision: s.revision, Resource: r, Key: key, Before: before})
	return before
}

// define stores a CRD as a request would.
func (s *shelf) define(t *testing.T, plural, kind string) {
	t.Helper()
	obj, err := object.ObjectOf(&apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}, ObjectMeta: metav1.ObjectMeta{Name: plural + ".test.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "test.example.com", Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := kinds.CompleteDefinition(obj); err != nil {
		t.Fatal(err)
	}
	s.Put(kinds.Definitions, obj)
}

// Of two CRDs that ask for one kind the first has it. The other is served when that is gone.
func TestController_NamesAreOfOneDefinition(t *testing.T) {
	s := &shelf{crds: map[types.NamespacedName]*object.Object{}, definitionController: &definitionController{Kinds: kinds.NewRegistry(), PublishAfter: func() time.Duration { return 0 }}}
	gv := schema.GroupVersion{Group: "test.example.com", Version: "v1"}
	stands := func(plural string, want bool) {
		t.Helper()
		crd, err := kinds.DefinitionOf(s.crds[types.NamespacedName{Name: plural + ".test.example.com"}])
		if err != nil {
			t.Fatal(err)
		}
		for _, condition := range []apiextensionsv1.CustomResourceDefinitionConditionType{apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
			if got := apihelpers.IsCRDConditionTrue(crd, condition); got != want {
				t.Errorf("%s is %s: %v, want %v", plural, condition, got, want)
			}
		}
		if got := s.Kinds.Lookup(gv, plural) != nil; got != want {
			t.Errorf("%s are served: %v, want %v", plural, got, want)
		}
	}
	s.define(t, "widgets", "Widget")
	stands("widgets", true)
	s.define(t, "gadgets", "Widget")
	stands("widgets", true)
	stands("gadgets", false)
	s.Remove(kinds.Definitions, types.NamespacedName{Name: "widgets.test.example.com"})
	if s.Kinds.Lookup(gv, "widgets") != nil || s.ended == 0 {
		t.Errorf("a kind whose definition is gone is served, or watches of it go on: %d ended", s.ended)
	}
	stands("gadgets", true)
}
