// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Reviews are created and answered, and never stored.

func (x *Control) ReviewSubject(spec *authorizationv1.SubjectAccessReviewSpec, also field.ErrorList) (authorizationv1.SubjectAccessReviewStatus, error) {
	errs := CheckSubject(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified"))
	}
	if errs = append(errs, also...); len(errs) > 0 {
		return authorizationv1.SubjectAccessReviewStatus{}, InvalidReview(errs)
	}
	user := User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	return x.Decide(user, spec.ResourceAttributes, spec.NonResourceAttributes), nil
}

// shownPath is how a refusal shows the attributes of a path.
type shownPath struct{ Path, Verb string }

func PathOfReview(a *authorizationv1.NonResourceAttributes) any {
	if a == nil {
		return (*shownPath)(nil)
	}
	return shownPath{a.Path, a.Verb}
}

func CheckSubject(r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) field.ErrorList {
	if (r == nil) != (n == nil) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec"), PathOfReview(n), "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
}

func InvalidReview(errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
}

func (x *Control) Decide(user User, r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) (status authorizationv1.SubjectAccessReviewStatus) {
	a := Attributes{User: user}
	if r != nil {
		a.Verb, a.Group, a.Resource, a.Subresource, a.Namespace, a.Name = r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace, r.Name
	} else {
		a.Verb, a.Path = n.Verb, n.Path
	}
	status.Allowed, status.Reason = x.allowed(a)
	return status
}
