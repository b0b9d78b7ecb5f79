// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// definitionWriter is who is said to write the status of CRDs.
const definitionWriter = "kube-apiserver"

// definedLocked does what the controllers of a real server do when a CRD has
// changed: accept its names, establish it, serve it, and empty it before it
// goes. Each step is a revision of its own, written at once.
func (s *Server) definedLocked(c revisions.Change) {
	if c.After == nil {
		if crd, err := kinds.DefinitionOf(c.Before); err == nil {
			s.undefineLocked(kinds.ResourceOf(crd))
			s.renameLocked(crd)
		}
		return
	}
	crd, err := kinds.DefinitionOf(c.After)
	if err != nil {
		return
	}
	if !object.Unset(crd.DeletionTimestamp) && apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		s.serveDefinitionLocked(c.After, crd)
		s.emptyDefinitionLocked(crd)
		return
	}
	if s.acceptNamesLocked(c.After, crd) {
		s.renameLocked(crd)
		return
	}
	named := apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted)
	if named && !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) && object.Unset(crd.DeletionTimestamp) && kinds.DefinedBy(c.After) != nil {
		s.conditionLocked(c.After, crd, apiextensionsv1.Established, apiextensionsv1.ConditionTrue, "InitialNamesAccepted", "the initial names have been accepted")
		return
	}
	s.serveDefinitionLocked(c.After, crd)
}

// conditionLocked writes a condition of a CRD.
func (s *Server) conditionLocked(obj *object.Object, crd *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus, reason, message string) {
	noteCondition(crd, kind, status, reason, message)
	s.writeStatusLocked(obj, crd)
}

// noteCondition notes a condition as of now.
func noteCondition(crd *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus, reason, message string) {
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: status, Reason: reason, Message: message})
}

// writeStatusLocked stores obj with the status and the finalizers of crd.
func (s *Server) writeStatusLocked(obj *object.Object, crd *apiextensionsv1.CustomResourceDefinition) {
	kind := s.kinds.Stored(kinds.Definitions)
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&crd.Status)
	if kind == nil || err != nil {
		return
	}
	next := obj.Copy()
	next.Fields["status"] = status
	next.Meta().SetFinalizers(crd.Finalizers)
	q := &writing{call: &call{kind: kind, name: crd.Name, subresource: "status"}, manager: definitionWriter}
	if err := q.own(obj, next); err == nil {
		s.putLocked(kinds.Definitions, next)
	}
}

// acceptNamesLocked gives a CRD the names that it asks for and that nobody in
// its group has, and reports whether that is news.
func (s *Server) acceptNamesLocked(obj *object.Object, crd *apiextensionsv1.CustomResourceDefinition) bool {
	if reflect.DeepEqual(crd.Spec.Names, crd.Status.AcceptedNames) {
		return false
	}
	names, reason, message := s.claimLocked(crd)
	status := apiextensionsv1.ConditionFalse
	if reason == "" {
		status, reason, message = apiextensionsv1.ConditionTrue, "NoConflicts", "no conflicts found"
	}
	want := apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.NamesAccepted, Status: status, Reason: reason, Message: message}
	if reflect.DeepEqual(names, crd.Status.AcceptedNames) && apihelpers.IsCRDConditionEquivalent(&want, apihelpers.FindCRDCondition(crd, apiextensionsv1.NamesAccepted)) {
		return false
	}
	crd.Status.AcceptedNames = names
	noteCondition(crd, want.Type, want.Status, want.Reason, want.Message)
	switch established := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established); {
	case established != nil && established.Status == apiextensionsv1.ConditionTrue:
	case status == apiextensionsv1.ConditionTrue:
		noteCondition(crd, apiextensionsv1.Established, apiextensionsv1.ConditionFalse, "Installing", "the initial names have been accepted")
	case established == nil:
		noteCondition(crd, apiextensionsv1.Established, apiextensionsv1.ConditionFalse, "NotAccepted", "not all names are accepted")
	}
	s.writeStatusLocked(obj, crd)
	return true
}

// claimLocked is the names that a CRD gets, and why not all that it asks for.
func (s *Server) claimLocked(crd *apiextensionsv1.CustomResourceDefinition) (names apiextensionsv1.CustomResourceDefinitionNames, reason, message string) {
	resources, kinds := s.namesLocked(crd)
	asked := crd.Spec.Names
	names = crd.Status.AcceptedNames
	claim := func(want string, has *string, taken []string, conflict string) {
		if want != *has && slices.Contains(taken, want) {
			reason, message = conflict, fmt.Sprintf("%q is already in use", want)
			return
		}
		*has = want
	}
	claim(asked.Plural, &names.Plural, resources, "PluralConflict")
	claim(asked.Singular, &names.Singular, resources, "SingularConflict")
	var conflicts []error
	for _, short := range asked.ShortNames {
		if !slices.Contains(names.ShortNames, short) && slices.Contains(resources, short) {
			conflicts = append(conflicts, fmt.Errorf("%q is already in use", short))
		}
	}
	if err := utilerrors.NewAggregate(conflicts); err != nil {
		reason, message = "ShortNamesConflict", err.Error()
	} else {
		names.ShortNames = asked.ShortNames
	}
	claim(asked.Kind, &names.Kind, kinds, "KindConflict")
	claim(asked.ListKind, &names.ListKind, kinds, "ListKindConflict")
	names.Categories = asked.Categories
	return names, reason, message
}

// namesLocked are the names that the CRDs of a group have, those of crd too.
func (s *Server) namesLocked(crd *apiextensionsv1.CustomResourceDefinition) (resources, kinds []string) {
	s.eachDefinitionLocked(crd.Spec.Group, func(_ *object.Object, other *apiextensionsv1.CustomResourceDefinition) {
		names := other.Status.AcceptedNames
		resources = append(append(resources, names.Plural, names.Singular), names.ShortNames...)
		kinds = append(kinds, names.Kind, names.ListKind)
	})
	return resources, kinds
}

// eachDefinitionLocked goes through the CRDs of a group in the order of names.
func (s *Server) eachDefinitionLocked(group string, see func(*object.Object, *apiextensionsv1.CustomResourceDefinition)) {
	held, _ := s.mu.log.List(kinds.Definitions, s.mu.log.Revision)
	for _, obj := range held {
		if crd, err := kinds.DefinitionOf(obj); err == nil && crd.Spec.Group == group {
			see(obj, crd)
		}
	}
}

// renameLocked looks again at the names of the other CRDs of a group: one of
// them may get a name that has become free.
func (s *Server) renameLocked(of *apiextensionsv1.CustomResourceDefinition) {
	s.eachDefinitionLocked(of.Spec.Group, func(obj *object.Object, crd *apiextensionsv1.CustomResourceDefinition) {
		// One that has changed since has been looked at.
		if crd.Name != of.Name && object.Unset(crd.DeletionTimestamp) && s.mu.log.Get(kinds.Definitions, obj.Key()) == obj {
			s.acceptNamesLocked(obj, crd)
		}
	})
}

// emptyDefinitionLocked deletes all objects of a CRD that is to go, and the CRD
// when none is left.
func (s *Server) emptyDefinitionLocked(crd *apiextensionsv1.CustomResourceDefinition) {
	terminating := apihelpers.FindCRDCondition(crd, apiextensionsv1.Terminating)
	if terminating != nil && terminating.Reason == "InstanceDeletionInProgress" {
		return // somebody has changed something else meanwhile
	}
	obj := s.mu.log.Get(kinds.Definitions, types.NamespacedName{Name: crd.Name})
	s.conditionLocked(obj, crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	r := kinds.ResourceOf(crd)
	if kind := s.kinds.Stored(r); kind != nil && apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		objects, _ := s.mu.log.List(r, s.mu.log.Revision)
		for _, each := range objects {
			_, _, _ = s.deleteLocked(kind, each, &metav1.DeleteOptions{})
		}
	}
	s.emptiedLocked(crd.Name)
}

// emptiedLocked takes the finalizer of a CRD that is to go and has no objects
// any more.
func (s *Server) emptiedLocked(name string) {
	obj := s.mu.log.Get(kinds.Definitions, types.NamespacedName{Name: name})
	if obj == nil {
		return
	}
	crd, err := kinds.DefinitionOf(obj)
	if err != nil || object.Unset(crd.DeletionTimestamp) || !apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	if left := s.mu.log.Objects[kinds.ResourceOf(crd)]; left != nil && left.Len() > 0 {
		return
	}
	apihelpers.CRDRemoveFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer)
	if len(crd.Finalizers) == 0 {
		s.takeLocked(kinds.Definitions, obj.Key())
		return
	}
	s.conditionLocked(obj, crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
}

// markDefinition is a CRD that is to be deleted, from the first request on.
func markDefinition(old *object.Object) *object.Object {
	crd, err := kinds.DefinitionOf(old)
	if err != nil {
		return old
	}
	next := old.Copy()
	m := next.Meta()
	m.SetDeletionTimestamp(new(jsonvalue.Now()))
	if !apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		m.SetFinalizers(append(m.GetFinalizers(), apiextensionsv1.CustomResourceCleanupFinalizer))
	}
	noteCondition(crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue, "InstanceDeletionPending", "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
	if written, err := kinds.ObjectOfTyped(&kinds.Kind{GroupVersionKind: models.DefinitionKind}, crd); err == nil {
		next.Fields["status"] = written.Fields["status"]
	}
	return next
}
