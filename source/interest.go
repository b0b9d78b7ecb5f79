// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/kube"
)

// Interest is a Predicate for changes of a part of an object. Additions,
// resyncs and events that must not be lost always pass.
type Interest uint8

const (
	// SpecChanged: metadata.generation differs. Objects without a generation,
	// such as ConfigMaps, pass with every change.
	SpecChanged Interest = iota + 1
	// StatusChanged: the status differs. Objects whose status is not accessible
	// pass with every change.
	StatusChanged
	// LabelsChanged: the labels differ.
	LabelsChanged
	// AnnotationsChanged: the annotations differ.
	AnnotationsChanged
	// DeletionChanged: only events that no predicate can drop.
	DeletionChanged
)

var interestNames = map[Interest]string{
	SpecChanged: "spec", StatusChanged: "status", LabelsChanged: "labels",
	AnnotationsChanged: "annotations", DeletionChanged: "deletion",
}

// String returns the interest in lower case.
func (i Interest) String() string {
	return cmp.Or(interestNames[i], fmt.Sprintf("interest %d", uint8(i)))
}

func (i Interest) evaluate(c change, _ kube.Object) verdict {
	if !c.plainUpdate() {
		return maybe
	}
	switch i {
	case SpecChanged:
		g := c.New.GetGeneration()
		return verdictOf(g == 0 || g != c.Old.GetGeneration())
	case StatusChanged:
		return verdictOf(statusChanged(c.Old, c.New))
	case LabelsChanged:
		return verdictOf(!maps.Equal(c.Old.GetLabels(), c.New.GetLabels()))
	case AnnotationsChanged:
		return verdictOf(!maps.Equal(c.Old.GetAnnotations(), c.New.GetAnnotations()))
	}
	return no
}

func (i Interest) check(of objects) error {
	if i < SpecChanged || i > DeletionChanged {
		return fmt.Errorf("predicate %s is not one of package source", i)
	}
	if path := i.path(); path != "" && of.kept != nil && !slices.ContainsFunc(of.kept, func(kept string) bool {
		return kept == path || strings.HasPrefix(kept, path+".") || strings.HasPrefix(path, kept+".")
	}) {
		return fmt.Errorf("predicate %s would pass no change, because the informer does not keep %s; add %q to the Fields of its Scope", i, path, path)
	}
	return nil
}

// path returns the field that must be kept for the interest; empty: it always is.
func (i Interest) path() string {
	switch i {
	case StatusChanged:
		return "status"
	case AnnotationsChanged:
		return "metadata.annotations"
	}
	return ""
}

// Changed passes an update if f returns different values for the old and the
// new object, by Kubernetes' semantic equality. Use it as a custom interest,
// such as one condition or field.
func Changed[T kube.Object](f func(obj T) any) Predicate { return changed[T]{f} }

type changed[T kube.Object] struct{ pick func(T) any }

func (p changed[T]) evaluate(c change, _ kube.Object) verdict {
	if !c.plainUpdate() {
		return maybe
	}
	before, ok1 := c.Old.(T)
	after, ok2 := c.New.(T)
	return verdictOf(!ok1 || !ok2 || !equal(p.pick(before), p.pick(after)))
}

func (p changed[T]) check(of objects) error {
	return checkFunc[T]("Changed", p.pick == nil, of.like)
}

// equal reports whether two values are semantically equal. That comparison panics on types
// with unexported fields, such as time.Time, which are compared as Go does.
func equal(a, b any) (same bool) {
	defer func() {
		if recover() != nil {
			same = reflect.DeepEqual(a, b)
		}
	}()
	return equality.Semantic.DeepEqual(a, b)
}

// plainUpdate reports whether c is a change of a known object that may be
// dropped.
func (c change) plainUpdate() bool {
	return !c.vital && c.Type == kube.Updated && !c.Resync
}

// vital reports whether e must not be lost because of what changed.
func vital(e kube.Event[kube.Object]) bool {
	if e.Type == kube.Deleted || e.Type == kube.Undecoded {
		return true
	}
	if e.Type != kube.Updated {
		return false
	}
	if e.Old == nil || e.New == nil || e.Healed {
		return true
	}
	return e.Old.GetUID() != e.New.GetUID() ||
		e.Old.GetDeletionTimestamp().IsZero() != e.New.GetDeletionTimestamp().IsZero() ||
		!slices.Equal(e.Old.GetFinalizers(), e.New.GetFinalizers()) ||
		!sameOwners(e.Old.GetOwnerReferences(), e.New.GetOwnerReferences())
}

func sameOwners(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.OwnerReference) bool {
		return x.APIVersion == y.APIVersion && x.Kind == y.Kind && x.Name == y.Name && x.UID == y.UID &&
			ptr.Deref(x.Controller, false) == ptr.Deref(y.Controller, false)
	})
}

// statusChanged also returns true if the status is not accessible.
func statusChanged(before, after kube.Object) bool {
	a, ok1 := statusOf(before)
	b, ok2 := statusOf(after)
	return !ok1 || !ok2 || !equal(a, b)
}

func statusOf(obj kube.Object) (any, bool) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent()["status"], true
	}
	v := reflect.Indirect(reflect.ValueOf(obj))
	if v.Kind() != reflect.Struct {
		return nil, false
	}
	field := v.FieldByName("Status")
	if !field.IsValid() {
		return nil, false
	}
	return field.Interface(), true
}
