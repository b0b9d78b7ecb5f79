// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"fmt"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/kube"
)

// Validate registers f as a validating webhook of s for objects of type T at path. An
// empty path means that of kubebuilder: /validate-, group, version and kind, such as
// /validate-apps-v1-deployment. T is a pointer to a Go type of the scheme, or
// *unstructured.Unstructured, which accepts every kind and requires a path.
//
// f receives the object before and after the change: old is nil on creation, obj is nil
// on deletion, and both are set on update. Changes that f makes to them have no effect.
// An error denies the request, see verdicts in the package comment; warnings go through
// req. The context of f ends when the server stops waiting.
//
// Err and Run report invalid arguments.
func Validate[T kube.Object](s *Server, path string, f func(ctx context.Context, req *Request, old, obj T) error) {
	kind, path, err := s.place("validate", path, typeOf[T](), f == nil)
	if err != nil {
		s.remember(fmt.Errorf("validate %v: %w", typeOf[T](), err))
		return
	}
	plan := objectPlan[T]("object").With(decodelimit.JSONPlanOf(typeOf[T]()), "request", "oldObject")
	s.register(path, PurposeValidate, kind, admission(plan, toValidate, func(ctx context.Context, req *Request) ([]byte, error) {
		old, err := decode[T](req, kind, "oldObject", req.OldObject)
		if err != nil {
			return nil, err
		}
		obj, err := decode[T](req, kind, "object", req.Object)
		if err != nil {
			return nil, err
		}
		return nil, f(ctx, req, old, obj)
	}))
}

// Mutate registers f as a mutating webhook of s at path. f receives the object of each
// request that creates or updates a T, and its changes become part of the request. An
// empty path means /mutate-, group, version and kind; T is as for Validate.
//
// Fields that T does not know are preserved. f is called again for the same object on
// each update, and, with reinvocationPolicy IfNeeded, when another webhook has changed
// the object since: it must be idempotent. An error of f denies the request, see
// verdicts in the package comment.
//
// Err and Run report invalid arguments.
func Mutate[T kube.Object](s *Server, path string, f func(ctx context.Context, req *Request, obj T) error) {
	kind, path, err := s.place("mutate", path, typeOf[T](), f == nil)
	if err != nil {
		s.remember(fmt.Errorf("mutate %v: %w", typeOf[T](), err))
		return
	}
	s.register(path, PurposeMutate, kind, admission(objectPlan[T]("object"), toMutate, func(ctx context.Context, req *Request) ([]byte, error) {
		if !present(req.Object) {
			return nil, nil // a deletion: there is no object to change
		}
		obj, err := decode[T](req, kind, "object", req.Object)
		if err != nil {
			return nil, err
		}
		before, err := jsontree.Of[any](obj)
		if err != nil {
			return nil, badRequest("encode object of %s: %w", req.Kind.Kind, err)
		}
		if err := f(ctx, req, obj); err != nil {
			return nil, err
		}
		after, err := jsontree.Of[any](obj)
		if err != nil {
			return nil, internal(fmt.Errorf("encode the object that the webhook returned: %w", err))
		}
		return patch(req.Object.Raw, before, after, func(lists []string) error { return unknownIn(req.Object.Raw, obj, lists) })
	}))
}

// objectPlan returns the plan to decode an AdmissionReview whose object is a T.
func objectPlan[T kube.Object](field string) *decodelimit.JSONPlan {
	return decodelimit.JSONPlanOf(reflect.TypeFor[admissionv1.AdmissionReview]()).With(decodelimit.JSONPlanOf(typeOf[T]()), "request", field)
}

// decode decodes one object of req into a new T; nil if there is none.
func decode[T kube.Object](req *Request, kind schema.GroupVersionKind, field string, raw runtime.RawExtension) (T, error) {
	var none T
	if got := schema.GroupVersionKind(req.Kind); !kind.Empty() && got != kind {
		return none, badRequest("this webhook takes %s, and the request is for %s; correct the rules of the webhook configuration", words(kind), words(got))
	}
	if !present(raw) {
		return none, nil
	}
	obj := reflect.New(typeOf[T]().Elem()).Interface().(T)
	if err := unmarshal(raw.Raw, obj); err != nil {
		return none, badRequest("decode %s of kind %s as %T: %w", field, req.Kind.Kind, obj, err)
	}
	return obj, nil
}

// unmarshal decodes raw into obj as the server would.
func unmarshal(raw []byte, obj runtime.Object) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.UnmarshalJSON(raw)
	}
	if err := decodelimit.CostlyPlanOf(reflect.TypeOf(obj)).JSON(raw); err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, obj)
}

// present reports whether there is an object: the server omits a missing one or sends
// null.
func present(raw runtime.RawExtension) bool {
	return len(raw.Raw) > 0 && !bytes.Equal(raw.Raw, []byte("null"))
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

func words(kind schema.GroupVersionKind) string {
	return kind.GroupVersion().String() + " " + kind.Kind
}
