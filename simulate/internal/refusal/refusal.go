// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package refusal creates the Statuses with which a Kubernetes API server refuses a
// request, with the same messages. It sees no other package of the server.
package refusal

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TooOld(revision, oldest int64) *apierrors.StatusError {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", revision, oldest))
}

// ListTooOld returns the error for a list of an exact version that is compacted.
func ListTooOld() *apierrors.StatusError {
	return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
}

func TooLarge(revision, current int64) *apierrors.StatusError {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", revision, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// Plain returns an error without a reason.
func Plain(err error) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}}
}

// Method returns the error for a method that the path does not have.
func Method() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: "the server does not allow this method on the requested resource", Details: &metav1.StatusDetails{},
	}}
}

// Media returns the error for a body whose media type is not among those accepted.
func Media(accepted ...string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", "),
	}}
}

// Absent returns the error for an unknown path.
func Absent() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

func Conflict(r schema.GroupResource, name string) *apierrors.StatusError {
	return apierrors.NewConflict(r, name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

func Invalid(kind schema.GroupKind, name, field, message string) *apierrors.StatusError {
	err := apierrors.NewInvalid(kind, name, nil)
	err.ErrStatus.Message = fmt.Sprintf("%s %q is invalid: %s: %s", kind, name, field, message)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: message}}
	return err
}

// Overload returns the error of an overloaded server: 429 or 503.
func Overload(code, retryAfter int) *apierrors.StatusError {
	err := apierrors.NewTooManyRequests("too many requests, please try again later", retryAfter)
	switch code {
	case http.StatusInternalServerError:
		return apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	case http.StatusServiceUnavailable:
		err = apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter)}
	}
	return err
}
