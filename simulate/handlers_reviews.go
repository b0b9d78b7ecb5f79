// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/fieldmanager"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// reviewed reads the object of a review, and answers with what fill makes of
// it.
func reviewed[T any](s *Server, w http.ResponseWriter, c *call, fill func(review *T) error) error {
	q, review, err := typedWrite[T](c, c.kind.GroupVersionKind)
	if err != nil {
		return err
	}
	typed, ok := any(review).(runtime.Object)
	if !ok {
		return refusal.Method()
	}
	if err := ownReview(q, typed); err != nil {
		return err
	}
	if err := fill(review); err != nil {
		return err
	}
	return s.answerTyped(w, c, q, http.StatusCreated, c.kind.GroupVersionKind, typed)
}

// ownReview notes in a review whose fields are whose, as a real server does in
// all but those about who asks.
func ownReview(q *write.Request, typed runtime.Object) error {
	m, ok := typed.(metav1.Object)
	if !ok || q.Kind.Resource == "selfsubjectreviews" || q.Kind.Resource == "selfsubjectrulesreviews" {
		return nil
	}
	obj, err := kinds.ObjectOfTyped(q.Kind, typed)
	if err != nil {
		return err
	}
	kind := *q.Kind
	kind.Schema, kind.Managers = kinds.Deduced(&kind), ownership.NewFieldManagers()
	writer := fieldmanager.Writer{Kind: &kind, Manager: q.Manager}
	if err := writer.Own(nil, obj); err != nil {
		return err
	}
	m.SetManagedFields(obj.Meta().GetManagedFields())
	return nil
}

// reviewAccess answers who may do what.
func (s *Server) reviewAccess(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(r *authorizationv1.SubjectAccessReview) error {
		var err error
		r.Status, err = s.access.ReviewSubject(&r.Spec, nil)
		return err
	})
}

// reviewLocalAccess answers who may do what in a namespace.
func (s *Server) reviewLocalAccess(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(r *authorizationv1.LocalSubjectAccessReview) error {
		if r.Namespace != "" && r.Namespace != c.namespace {
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		r.Namespace = c.namespace
		var errs field.ErrorList
		switch a := r.Spec.ResourceAttributes; {
		case a != nil && a.Namespace != c.namespace:
			errs = append(errs, field.Invalid(field.NewPath("spec", "resourceAttributes", "namespace"), a.Namespace, "must match metadata.namespace"))
		case r.Spec.NonResourceAttributes != nil:
			errs = append(errs, field.Invalid(field.NewPath("spec", "nonResourceAttributes"), access.PathOfReview(r.Spec.NonResourceAttributes), "disallowed on this kind of request"))
		}
		var err error
		r.Status, err = s.access.ReviewSubject(&r.Spec, errs)
		return err
	})
}

// reviewOwnAccess answers what who asks may do.
func (s *Server) reviewOwnAccess(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(r *authorizationv1.SelfSubjectAccessReview) error {
		if errs := access.CheckSubject(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes); len(errs) > 0 {
			return access.InvalidReview(errs)
		}
		r.Status = s.access.Decide(c.user, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
		return nil
	})
}

// reviewSelf answers who asks.
func (s *Server) reviewSelf(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(r *authenticationv1.SelfSubjectReview) error {
		r.CreationTimestamp = jsonvalue.Now()
		r.Status.UserInfo = c.user.Info()
		return nil
	})
}

// reviewToken answers who a token is of.
func (s *Server) reviewToken(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(r *authenticationv1.TokenReview) error {
		if r.Spec.Token == "" {
			return apierrors.NewBadRequest("token is required for TokenReview in authentication")
		}
		audiences := r.Spec.Audiences
		if len(audiences) == 0 {
			audiences = []string{access.TokenIssuer}
		}
		user, counts, err := s.access.Bearer(r.Spec.Token, audiences)
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: err == nil, User: user.Info(), Audiences: counts}
		if err != nil {
			r.Status.Error = err.Error()
		}
		return nil
	})
}

// reviewRules answers what rules there are for who asks, in a namespace.
func (s *Server) reviewRules(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(r *authorizationv1.SelfSubjectRulesReview) error {
		if r.Spec.Namespace == "" {
			return apierrors.NewBadRequest("no namespace on request")
		}
		r.Status = s.access.RulesOf(c.user, r.Spec.Namespace)
		r.Spec = authorizationv1.SelfSubjectRulesReviewSpec{}
		return nil
	})
}
