// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// Reviews are created and answered, and never stored.

// reviewed reads the object of a review, and answers with what fill makes of
// it.
func reviewed[T any](s *Server, w http.ResponseWriter, c *call, fill func(q *writing, review *T) error) error {
	q, err := c.writing()
	if err != nil {
		return err
	}
	review, err := decodeOwn[T](q, c.kind.GroupVersionKind)
	if err != nil {
		return err
	}
	typed, ok := any(review).(runtime.Object)
	if !ok {
		return refusal.Method()
	}
	if err := q.ownReview(typed); err != nil {
		return err
	}
	if err := fill(q, review); err != nil {
		return err
	}
	return s.respondTyped(w, q, http.StatusCreated, c.kind.GroupVersionKind, typed)
}

// ownReview notes in a review whose fields are whose, as a real server does in
// all but those about who asks.
func (q *writing) ownReview(typed runtime.Object) error {
	m, ok := typed.(metav1.Object)
	if !ok || q.kind.Resource == "selfsubjectreviews" || q.kind.Resource == "selfsubjectrulesreviews" {
		return nil
	}
	obj, err := kinds.ObjectOfTyped(q.kind, typed)
	if err != nil {
		return err
	}
	kind := *q.kind
	kind.Schema, kind.Managers = kinds.Deduced(&kind), ownership.NewFieldManagers()
	if err := (&writing{call: &call{Request: q.Request, kind: &kind}, manager: q.manager}).own(nil, obj); err != nil {
		return err
	}
	m.SetManagedFields(obj.Meta().GetManagedFields())
	return nil
}

// reviewAccess answers who may do what.
func (s *Server) reviewAccess(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(_ *writing, r *authorizationv1.SubjectAccessReview) error {
		var err error
		r.Status, err = s.reviewSubject(&r.Spec, nil)
		return err
	})
}

// reviewLocalAccess answers who may do what in a namespace.
func (s *Server) reviewLocalAccess(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(_ *writing, r *authorizationv1.LocalSubjectAccessReview) error {
		if r.Namespace != "" && r.Namespace != c.namespace {
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		r.Namespace = c.namespace
		var errs field.ErrorList
		switch a := r.Spec.ResourceAttributes; {
		case a != nil && a.Namespace != c.namespace:
			errs = append(errs, field.Invalid(field.NewPath("spec", "resourceAttributes", "namespace"), a.Namespace, "must match metadata.namespace"))
		case r.Spec.NonResourceAttributes != nil:
			errs = append(errs, field.Invalid(field.NewPath("spec", "nonResourceAttributes"), pathOfReview(r.Spec.NonResourceAttributes), "disallowed on this kind of request"))
		}
		var err error
		r.Status, err = s.reviewSubject(&r.Spec, errs)
		return err
	})
}

// reviewOwnAccess answers what who asks may do.
func (s *Server) reviewOwnAccess(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(_ *writing, r *authorizationv1.SelfSubjectAccessReview) error {
		if errs := checkSubject(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes); len(errs) > 0 {
			return invalidReview(errs)
		}
		r.Status = s.decide(c.user, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
		return nil
	})
}

func (s *Server) reviewSubject(spec *authorizationv1.SubjectAccessReviewSpec, also field.ErrorList) (authorizationv1.SubjectAccessReviewStatus, error) {
	errs := checkSubject(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified"))
	}
	if errs = append(errs, also...); len(errs) > 0 {
		return authorizationv1.SubjectAccessReviewStatus{}, invalidReview(errs)
	}
	user := User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	return s.decide(user, spec.ResourceAttributes, spec.NonResourceAttributes), nil
}

// shownPath is how a refusal shows the attributes of a path.
type shownPath struct{ Path, Verb string }

func pathOfReview(a *authorizationv1.NonResourceAttributes) any {
	if a == nil {
		return (*shownPath)(nil)
	}
	return shownPath{a.Path, a.Verb}
}

func checkSubject(r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) field.ErrorList {
	if (r == nil) != (n == nil) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec"), pathOfReview(n), "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
}

func invalidReview(errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
}

func (s *Server) decide(user User, r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) (status authorizationv1.SubjectAccessReviewStatus) {
	a := attributes{user: user}
	if r != nil {
		a.verb, a.group, a.resource, a.subresource, a.namespace, a.name = r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace, r.Name
	} else {
		a.verb, a.path = n.Verb, n.Path
	}
	status.Allowed, status.Reason = s.allowed(a)
	return status
}
