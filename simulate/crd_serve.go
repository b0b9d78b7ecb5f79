// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
)

// serveDefinitionLocked serves what a CRD defines, as far as its names are
// accepted, and ends the watches of kinds that are not as they were.
func (s *Server) serveDefinitionLocked(obj *object.Object, crd *apiextensionsv1.CustomResourceDefinition) {
	r := kinds.ResourceOf(crd)
	accepted := apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) || apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
	old := s.kinds.Family(r)
	if !accepted || r.Resource == "" || kinds.DefinedBy(obj) == nil || old != nil && old.Storage.Builtin {
		return
	}
	next := &kinds.Family{Definition: kinds.DefinedBy(obj), Names: crd.Status.AcceptedNames, Terminating: apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Terminating)}
	if same := old != nil && old.Definition != nil && old.Definition.Key == next.Definition.Key && equality.Semantic.DeepEqual(old.Names, next.Names); same {
		s.kinds.Terminate(old, next.Terminating)
		return
	}
	next.Convert = webhooks.Conversion(kinds.DefinedBy(obj).Spec.Conversion, s.webhookRoad)
	next.Asked = next.Convert != nil
	next.Fill(r)
	s.replaceLocked(next)
}

// replaceLocked serves kinds in place of those of the same resource, whose
// watches end: their objects may look different from now on.
func (s *Server) replaceLocked(f *kinds.Family) {
	old := s.kinds.Family(f.Resource)
	for _, k := range f.Versions {
		k.SchemaLife = kinds.SchemaLife{Oldest: max(k.Oldest, s.mu.log.Revision)}
		if old != nil {
			k.SchemaLife = old.Storage.SchemaLife
			k.Changes++
			k.Publish = time.Now().Add(s.mu.faults.publishAfter)
		}
	}
	s.kinds.Install(f)
	if old != nil {
		s.endLocked(f.Resource)
	}
}

// undefineLocked serves a kind no longer: its CRD is gone.
func (s *Server) undefineLocked(r schema.GroupResource) {
	if f := s.kinds.Family(r); f == nil || f.Definition == nil {
		return
	}
	s.kinds.Remove(r)
	s.endLocked(r)
}

// redefineLocked serves what the CRDs that are stored define, and nothing else
// that a CRD has defined: the store is another than it was.
func (s *Server) redefineLocked() {
	held, _ := s.mu.log.List(kinds.Definitions, s.mu.log.Revision)
	kept := map[schema.GroupResource]bool{}
	for _, obj := range held {
		crd, err := kinds.DefinitionOf(obj)
		if err != nil {
			continue
		}
		if kinds.DefinedBy(obj) == nil {
			obj.Defines, _ = kinds.CompileDefinition(&crd.Spec) // what cannot be compiled is not served
		}
		kept[kinds.ResourceOf(crd)] = true
		s.serveDefinitionLocked(obj, crd)
	}
	for _, r := range s.kinds.Resources() {
		if !kept[r] {
			s.undefineLocked(r)
		}
	}
}
