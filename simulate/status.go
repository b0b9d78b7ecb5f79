// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What the API server says when it says no.

func errTooOld(revision, oldest int64) *apierrors.StatusError {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", revision, oldest))
}

func errContinueTooOld() *apierrors.StatusError {
	return apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.")
}

func errTooLarge(revision, current int64) *apierrors.StatusError {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", revision, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func errConflict(r schema.GroupResource, name string) *apierrors.StatusError {
	return apierrors.NewConflict(r, name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

func errPrecondition(r schema.GroupResource, name, field, want, got string) *apierrors.StatusError {
	//lint:ignore ST1005 the server's words
	return apierrors.NewConflict(r, name, fmt.Errorf("Precondition failed: %s in precondition: %s, %s in object meta: %s", field, want, field, got))
}

func errInvalid(kind schema.GroupKind, name, field, message string) *apierrors.StatusError {
	err := apierrors.NewInvalid(kind, name, nil)
	err.ErrStatus.Message = fmt.Sprintf("%s %q is invalid: %s: %s", kind, name, field, message)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: message}}
	return err
}

func errForbidden(user, verb string, r schema.GroupResource, namespace string) *apierrors.StatusError {
	where := "at the cluster scope"
	if namespace != "" {
		where = fmt.Sprintf("in the namespace %q", namespace)
	}
	//lint:ignore ST1005 the server's words
	return apierrors.NewForbidden(r, "", fmt.Errorf("User %q cannot %s resource %q in API group %q %s", user, verb, r.Resource, r.Group, where))
}

// errForbiddenPath is a refusal of what is not a resource.
func errForbiddenPath(user, path string) *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("User %q cannot get path %q", user, path))
}

func errNoSuchLabel(kind schema.GroupVersionKind, field string) *apierrors.StatusError {
	return apierrors.NewBadRequest(fmt.Sprintf("Unable to find %q that match label selector \"\", field selector %q: field label not supported: %s", kind.GroupVersion(), field, field))
}

// errOverload is what a server says that has too much to do: 429 or 503.
func errOverload(code, retryAfter int) *apierrors.StatusError {
	err := apierrors.NewTooManyRequests("too many requests, please try again later", retryAfter)
	if code == http.StatusServiceUnavailable {
		err = apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter)}
	}
	return err
}
