// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Reviews are created and answered, and never stored.

func (x *Control) reviewSubject(spec *authorizationv1.SubjectAccessReviewSpec, also field.ErrorList) (authorizationv1.SubjectAccessReviewStatus, error) {
	errs := checkSubject(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified"))
	}
	if errs = append(errs, also...); len(errs) > 0 {
		return authorizationv1.SubjectAccessReviewStatus{}, invalidReview(errs)
	}
	user := User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	return x.decide(user, spec.ResourceAttributes, spec.NonResourceAttributes), nil
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

func (x *Control) decide(user User, r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) (status authorizationv1.SubjectAccessReviewStatus) {
	a := Attributes{User: user}
	if r != nil {
		a.Verb, a.Group, a.Resource, a.Subresource, a.Namespace, a.Name = r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace, r.Name
	} else {
		a.Verb, a.Path = n.Verb, n.Path
	}
	status.Allowed, status.Reason = x.allowed(a)
	return status
}

// Review fills in the status of a review that user asks for in a namespace, which is empty
// for reviews without one.
func (x *Control) Review(user User, namespace string, review any) (err error) {
	switch r := review.(type) {
	case *authorizationv1.SubjectAccessReview:
		r.Status, err = x.reviewSubject(&r.Spec, nil)
	case *authorizationv1.LocalSubjectAccessReview:
		err = x.reviewLocal(namespace, r)
	case *authorizationv1.SelfSubjectAccessReview:
		if errs := checkSubject(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes); len(errs) > 0 {
			return invalidReview(errs)
		}
		r.Status = x.decide(user, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	case *authorizationv1.SelfSubjectRulesReview:
		if r.Spec.Namespace == "" {
			return apierrors.NewBadRequest("no namespace on request")
		}
		r.Status = x.rulesOf(user, r.Spec.Namespace)
		r.Spec = authorizationv1.SelfSubjectRulesReviewSpec{}
	case *authenticationv1.SelfSubjectReview:
		r.CreationTimestamp = object.Now()
		r.Status.UserInfo = user.Info()
	case *authenticationv1.TokenReview:
		err = x.reviewToken(r)
	default:
		err = apierrors.NewInternalError(fmt.Errorf("a %T is no review", review))
	}
	return err
}

func (x *Control) reviewLocal(namespace string, r *authorizationv1.LocalSubjectAccessReview) (err error) {
	if r.Namespace != "" && r.Namespace != namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	r.Namespace = namespace
	var errs field.ErrorList
	switch a := r.Spec.ResourceAttributes; {
	case a != nil && a.Namespace != namespace:
		errs = append(errs, field.Invalid(field.NewPath("spec", "resourceAttributes", "namespace"), a.Namespace, "must match metadata.namespace"))
	case r.Spec.NonResourceAttributes != nil:
		errs = append(errs, field.Invalid(field.NewPath("spec", "nonResourceAttributes"), pathOfReview(r.Spec.NonResourceAttributes), "disallowed on this kind of request"))
	}
	r.Status, err = x.reviewSubject(&r.Spec, errs)
	return err
}

func (x *Control) reviewToken(r *authenticationv1.TokenReview) error {
	if r.Spec.Token == "" {
		return apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	audiences := r.Spec.Audiences
	if len(audiences) == 0 {
		audiences = []string{x.issuer()}
	}
	user, counts, err := x.Bearer(r.Spec.Token, audiences)
	r.Status = authenticationv1.TokenReviewStatus{Authenticated: err == nil, User: user.Info(), Audiences: counts}
	if err != nil {
		r.Status.Error = err.Error()
	}
	return nil
}
