// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/kube"
)

// SpokeOf is one version of a kind, with its conversions to and from the hub. Create it
// with Spoke.
type SpokeOf[Hub kube.Object] struct {
	version reflect.Type
	toHub   func(from kube.Object, to Hub) error
	fromHub func(from Hub, to kube.Object) error
}

// Spoke returns the version T of a kind whose hub is Hub. Each function fills its
// second argument, which already has the metadata of the first, and must retain
// neither. Changes to metadata have no effect, except for labels and annotations. An
// error or a panic is returned to the client that requested the object.
func Spoke[T, Hub kube.Object](toHub func(from T, to Hub) error, fromHub func(from Hub, to T) error) SpokeOf[Hub] {
	if toHub == nil || fromHub == nil {
		return SpokeOf[Hub]{version: typeOf[T]()}
	}
	return SpokeOf[Hub]{
		version: typeOf[T](),
		toHub:   func(from kube.Object, to Hub) error { return toHub(from.(T), to) },
		fromHub: func(from Hub, to kube.Object) error { return fromHub(from, to.(T)) },
	}
}

// Convert registers conversions between the versions of a kind in s, at /convert: from
// one version to the hub, and from the hub to another. Hub and the types of the spokes
// are in the scheme, each one version of the same kind. All kinds share the path.
//
// Data that a version cannot express is lost in a round trip through it; keep it in an
// annotation. Err and Run report invalid arguments.
func Convert[Hub kube.Object](s *Server, spokes ...SpokeOf[Hub]) {
	if err := convert(s, spokes); err != nil {
		s.remember(fmt.Errorf("convert %v: %w", typeOf[Hub](), err))
	}
}

func convert[Hub kube.Object](s *Server, spokes []SpokeOf[Hub]) error {
	hub, err := s.kindOf(typeOf[Hub]())
	if err != nil {
		return err
	}
	if len(spokes) == 0 {
		return errors.New("no other version is given; add a webhook.Spoke for each")
	}
	versions := map[string]version{hub.Version: {
		made:    typeOf[Hub](),
		plan:    conversionPlan(typeOf[Hub]()),
		toHub:   func(obj kube.Object) (kube.Object, error) { return obj, nil },
		fromHub: func(obj kube.Object) (kube.Object, error) { return obj, nil },
	}}
	for _, spoke := range spokes {
		kind, err := s.kindOf(spoke.version)
		switch {
		case err != nil:
			return err
		case spoke.toHub == nil || spoke.fromHub == nil:
			return fmt.Errorf("a function of the spoke %v is nil", spoke.version)
		case kind.GroupKind() != hub.GroupKind():
			return fmt.Errorf("%v is of kind %s, and the hub is of %s", spoke.version, kind.GroupKind(), hub.GroupKind())
		case !versions[kind.Version].zero():
			return fmt.Errorf("version %q is given twice", kind.Version)
		}
		versions[kind.Version] = spoke.erase()
	}
	return s.registerConversion(hub.GroupKind(), versions)
}

// version is one version of a kind, without type parameters.
type version struct {
	made           reflect.Type
	plan           *decodelimit.JSONPlan // to decode a review of its objects
	toHub, fromHub func(kube.Object) (kube.Object, error)
}

func (v version) zero() bool { return v.made == nil }

// conversionPlan returns the plan to decode a ConversionReview whose objects are of
// type t.
func conversionPlan(t reflect.Type) *decodelimit.JSONPlan {
	return decodelimit.JSONPlanOf(reflect.TypeFor[conversionReview]()).With(decodelimit.JSONPlanOf(t), "request", "objects")
}

func (v version) new() kube.Object {
	return reflect.New(v.made.Elem()).Interface().(kube.Object)
}

func (spoke SpokeOf[Hub]) erase() version {
	v := version{made: spoke.version, plan: conversionPlan(spoke.version)}
	v.toHub = func(obj kube.Object) (kube.Object, error) {
		hub := reflect.New(typeOf[Hub]().Elem()).Interface().(Hub)
		copyMetadata(obj, hub)
		return hub, spoke.toHub(obj, hub)
	}
	v.fromHub = func(hub kube.Object) (kube.Object, error) {
		obj := v.new()
		copyMetadata(hub, obj)
		return obj, spoke.fromHub(hub.(Hub), obj)
	}
	return v
}

// copyMetadata copies the metadata of from to to, so that most functions need not.
func copyMetadata(from, to kube.Object) {
	to.SetName(from.GetName())
	to.SetGenerateName(from.GetGenerateName())
	to.SetNamespace(from.GetNamespace())
	to.SetUID(from.GetUID())
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetGeneration(from.GetGeneration())
	to.SetCreationTimestamp(from.GetCreationTimestamp())
	to.SetDeletionTimestamp(from.GetDeletionTimestamp())
	to.SetDeletionGracePeriodSeconds(from.GetDeletionGracePeriodSeconds())
	to.SetLabels(from.GetLabels())
	to.SetAnnotations(from.GetAnnotations())
	to.SetFinalizers(from.GetFinalizers())
	to.SetOwnerReferences(from.GetOwnerReferences())
	to.SetManagedFields(from.GetManagedFields())
}
