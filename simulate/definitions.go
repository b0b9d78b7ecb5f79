// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/flyball-dev/flyball/simulate/internal/fieldmanager"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// definitionStore is where objects are kept. The caller holds its lock. A Put or Remove
// calls After before it returns.
type definitionStore interface {
	// Get returns one object; nil: there is none.
	Get(r schema.GroupResource, key types.NamespacedName) *object.Object
	// List returns the objects of a resource in the order of their keys.
	List(r schema.GroupResource) []*object.Object
	// Count returns how many objects of a resource there are.
	Count(r schema.GroupResource) int
	// Put stores an object at the next revision.
	Put(r schema.GroupResource, obj *object.Object) *object.Object
	// Remove removes an object at the next revision, and returns its last state.
	Remove(r schema.GroupResource, key types.NamespacedName) *object.Object
	// Revision returns the current revision.
	Revision() int64
	// EndWatches ends the watches of a resource: its objects may look different from now on.
	EndWatches(r schema.GroupResource)
}

// definitionController does the work of a real server's controllers for
// CustomResourceDefinitions: it accepts their names, establishes them, serves and stops
// serving what they define, and deletes their objects before they go. Its methods are called
// with the lock of the store.
type definitionController struct {
	Kinds  *kinds.Registry
	Dialer webhooks.Dialer // to conversion webhooks
	// PublishAfter returns how long after a change a schema is published.
	PublishAfter func() time.Duration
}

// statusManager is the field manager of the status of CRDs.
const statusManager = "kube-apiserver"

// After does what follows a change of any object.
func (c *definitionController) After(store definitionStore, change revisions.Change) {
	if change.Resource == kinds.Definitions {
		c.Changed(store, change)
		return
	}
	if change.After != nil {
		return
	}
	if terminating, _ := c.Kinds.Terminating(change.Resource); terminating {
		c.finish(store, change.Resource.String()) // it may have been the last object
	}
}

// Changed does what the controllers of a real server do when a CRD has changed: accept
// its names, establish it, serve it, and delete its objects before it goes. Each step is a
// revision of its own, written at once.
func (c *definitionController) Changed(store definitionStore, change revisions.Change) {
	if change.After == nil {
		if crd, err := kinds.DefinitionOf(change.Before); err == nil {
			c.remove(store, kinds.ResourceOf(crd))
			c.rename(store, crd)
		}
		return
	}
	crd, err := kinds.DefinitionOf(change.After)
	if err != nil {
		return
	}
	if !object.Unset(crd.DeletionTimestamp) && apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		c.serve(store, change.After, crd)
		c.empty(store, crd)
		return
	}
	if c.acceptNames(store, change.After, crd) {
		c.rename(store, crd)
		return
	}
	named := apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted)
	if named && !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) && object.Unset(crd.DeletionTimestamp) && kinds.DefinedBy(change.After) != nil {
		c.writeCondition(store, change.After, crd, apiextensionsv1.Established, apiextensionsv1.ConditionTrue, "InitialNamesAccepted", "the initial names have been accepted")
		return
	}
	c.serve(store, change.After, crd)
}

// writeCondition stores a condition of a CRD.
func (c *definitionController) writeCondition(store definitionStore, obj *object.Object, crd *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus, reason, message string) {
	setCondition(crd, kind, status, reason, message)
	c.writeStatus(store, obj, crd)
}

// setCondition sets a condition as of now.
func setCondition(crd *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus, reason, message string) {
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: status, Reason: reason, Message: message})
}

// writeStatus stores obj with the status and the finalizers of crd.
func (c *definitionController) writeStatus(store definitionStore, obj *object.Object, crd *apiextensionsv1.CustomResourceDefinition) {
	kind := c.Kinds.Stored(kinds.Definitions)
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&crd.Status)
	if kind == nil || err != nil {
		return
	}
	next := obj.Copy()
	next.Fields["status"] = status
	next.Meta().SetFinalizers(crd.Finalizers)
	writer := fieldmanager.Writer{Kind: kind, Subresource: "status", Manager: statusManager}
	if err := writer.Own(obj, next); err == nil {
		store.Put(kinds.Definitions, next)
	}
}

// acceptNames gives a CRD the names that it asks for and that no other CRD of its group
// has, and reports whether that changed anything.
func (c *definitionController) acceptNames(store definitionStore, obj *object.Object, crd *apiextensionsv1.CustomResourceDefinition) bool {
	if reflect.DeepEqual(crd.Spec.Names, crd.Status.AcceptedNames) {
		return false
	}
	names, reason, message := claimNames(store, crd)
	status := apiextensionsv1.ConditionFalse
	if reason == "" {
		status, reason, message = apiextensionsv1.ConditionTrue, "NoConflicts", "no conflicts found"
	}
	want := apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.NamesAccepted, Status: status, Reason: reason, Message: message}
	if reflect.DeepEqual(names, crd.Status.AcceptedNames) && apihelpers.IsCRDConditionEquivalent(&want, apihelpers.FindCRDCondition(crd, apiextensionsv1.NamesAccepted)) {
		return false
	}
	crd.Status.AcceptedNames = names
	setCondition(crd, want.Type, want.Status, want.Reason, want.Message)
	switch established := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established); {
	case established != nil && established.Status == apiextensionsv1.ConditionTrue:
	case status == apiextensionsv1.ConditionTrue:
		setCondition(crd, apiextensionsv1.Established, apiextensionsv1.ConditionFalse, "Installing", "the initial names have been accepted")
	case established == nil:
		setCondition(crd, apiextensionsv1.Established, apiextensionsv1.ConditionFalse, "NotAccepted", "not all names are accepted")
	}
	c.writeStatus(store, obj, crd)
	return true
}

// claimNames returns the names that a CRD gets, and why not all that it asks for.
func claimNames(store definitionStore, crd *apiextensionsv1.CustomResourceDefinition) (names apiextensionsv1.CustomResourceDefinitionNames, reason, message string) {
	resources, kinds := definedNames(store, crd)
	asked := crd.Spec.Names
	names = crd.Status.AcceptedNames
	take := func(want string, has *string, taken []string, conflict string) {
		if want != *has && slices.Contains(taken, want) {
			reason, message = conflict, fmt.Sprintf("%q is already in use", want)
			return
		}
		*has = want
	}
	take(asked.Plural, &names.Plural, resources, "PluralConflict")
	take(asked.Singular, &names.Singular, resources, "SingularConflict")
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
	take(asked.Kind, &names.Kind, kinds, "KindConflict")
	take(asked.ListKind, &names.ListKind, kinds, "ListKindConflict")
	names.Categories = asked.Categories
	return names, reason, message
}

// definedNames returns the names that the CRDs of a group have, those of crd too.
func definedNames(store definitionStore, crd *apiextensionsv1.CustomResourceDefinition) (resources, kinds []string) {
	eachDefinition(store, crd.Spec.Group, func(_ *object.Object, other *apiextensionsv1.CustomResourceDefinition) {
		names := other.Status.AcceptedNames
		resources = append(append(resources, names.Plural, names.Singular), names.ShortNames...)
		kinds = append(kinds, names.Kind, names.ListKind)
	})
	return resources, kinds
}

// eachDefinition calls see for the CRDs of a group in the order of names.
func eachDefinition(store definitionStore, group string, see func(*object.Object, *apiextensionsv1.CustomResourceDefinition)) {
	for _, obj := range store.List(kinds.Definitions) {
		if crd, err := kinds.DefinitionOf(obj); err == nil && crd.Spec.Group == group {
			see(obj, crd)
		}
	}
}

// rename looks again at the names of the other CRDs of a group: one of them may get a name
// that has become free.
func (c *definitionController) rename(store definitionStore, of *apiextensionsv1.CustomResourceDefinition) {
	eachDefinition(store, of.Spec.Group, func(obj *object.Object, crd *apiextensionsv1.CustomResourceDefinition) {
		// A CRD that has changed since has been looked at.
		if crd.Name != of.Name && object.Unset(crd.DeletionTimestamp) && store.Get(kinds.Definitions, obj.Key()) == obj {
			c.acceptNames(store, obj, crd)
		}
	})
}

// empty deletes all objects of a CRD that is being deleted, and the CRD when none is left.
func (c *definitionController) empty(store definitionStore, crd *apiextensionsv1.CustomResourceDefinition) {
	terminating := apihelpers.FindCRDCondition(crd, apiextensionsv1.Terminating)
	if terminating != nil && terminating.Reason == "InstanceDeletionInProgress" {
		return // another change came in between
	}
	obj := store.Get(kinds.Definitions, types.NamespacedName{Name: crd.Name})
	c.writeCondition(store, obj, crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	r := kinds.ResourceOf(crd)
	if kind := c.Kinds.Stored(r); kind != nil && apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		for _, each := range store.List(r) {
			_, _, _ = write.Delete(store, kind, each, &metav1.DeleteOptions{})
		}
	}
	c.finish(store, crd.Name)
}

// finish removes the finalizer of a CRD that is being deleted and has no objects left.
func (c *definitionController) finish(store definitionStore, name string) {
	obj := store.Get(kinds.Definitions, types.NamespacedName{Name: name})
	if obj == nil {
		return
	}
	crd, err := kinds.DefinitionOf(obj)
	if err != nil || object.Unset(crd.DeletionTimestamp) || !apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	if store.Count(kinds.ResourceOf(crd)) > 0 {
		return
	}
	apihelpers.CRDRemoveFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer)
	if len(crd.Finalizers) == 0 {
		store.Remove(kinds.Definitions, obj.Key())
		return
	}
	c.writeCondition(store, obj, crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
}

// serve serves what a CRD defines, as far as its names are accepted, and ends the watches
// of kinds that have changed.
func (c *definitionController) serve(store definitionStore, obj *object.Object, crd *apiextensionsv1.CustomResourceDefinition) {
	r := kinds.ResourceOf(crd)
	accepted := apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) || apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
	old := c.Kinds.Family(r)
	if !accepted || r.Resource == "" || kinds.DefinedBy(obj) == nil || old != nil && old.Storage.Builtin {
		return
	}
	next := &kinds.Family{Definition: kinds.DefinedBy(obj), Names: crd.Status.AcceptedNames, Terminating: apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Terminating)}
	if same := old != nil && old.Definition != nil && old.Definition.Key == next.Definition.Key && equality.Semantic.DeepEqual(old.Names, next.Names); same {
		c.Kinds.Terminate(old, next.Terminating)
		return
	}
	next.Convert = webhooks.Conversion(kinds.DefinedBy(obj).Spec.Conversion, c.Dialer)
	next.Asked = next.Convert != nil
	next.Fill(r)
	c.Replace(store, next)
}

// Replace serves kinds in place of those of the same resource from now on, and ends the
// watches of those.
func (c *definitionController) Replace(store definitionStore, f *kinds.Family) {
	old := c.Kinds.Family(f.Resource)
	for _, k := range f.Versions {
		k.SchemaLife = kinds.SchemaLife{Oldest: max(k.Oldest, store.Revision())}
		if old != nil {
			k.SchemaLife = old.Storage.SchemaLife
			k.Changes++
			k.Publish = time.Now().Add(c.PublishAfter())
		}
	}
	c.Kinds.Install(f)
	if old != nil {
		store.EndWatches(f.Resource)
	}
}

// remove stops serving a kind whose CRD is gone.
func (c *definitionController) remove(store definitionStore, r schema.GroupResource) {
	if f := c.Kinds.Family(r); f == nil || f.Definition == nil {
		return
	}
	c.Kinds.Remove(r)
	store.EndWatches(r)
}

// Restore serves what the stored CRDs define, and nothing else that a CRD has defined. It
// is called when the store has changed as a whole.
func (c *definitionController) Restore(store definitionStore) {
	kept := map[schema.GroupResource]bool{}
	for _, obj := range store.List(kinds.Definitions) {
		crd, err := kinds.DefinitionOf(obj)
		if err != nil {
			continue
		}
		if kinds.DefinedBy(obj) == nil {
			obj.Defines, _ = kinds.CompileDefinition(&crd.Spec) // a schema that does not compile is not served
		}
		kept[kinds.ResourceOf(crd)] = true
		c.serve(store, obj, crd)
	}
	for _, r := range c.Kinds.Resources() {
		if !kept[r] {
			c.remove(store, r)
		}
	}
}
