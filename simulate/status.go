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
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// What the API server says when it says no.

func errTooOld(revision, oldest int64) *apierrors.StatusError {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", revision, oldest))
}

// errListTooOld is said of a list of an exact version.
func errListTooOld() *apierrors.StatusError {
	return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
}

// errContinueTooOld is said of a page whose version is forgotten. With it comes
// a token for the rest as it is now.
func errContinueTooOld(namespace string, from types.NamespacedName) *apierrors.StatusError {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	err.ErrStatus.ListMeta.Continue = continueFrom(namespace, from, -1)
	return err
}

func errTooLarge(revision, current int64) *apierrors.StatusError {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", revision, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// errPlain is an error that has no reason of its own.
func errPlain(err error) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}}
}

// errMethod is said of a method that the path does not have.
func errMethod() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: "the server does not allow this method on the requested resource", Details: &metav1.StatusDetails{},
	}}
}

// errAbsent is said of a path below what there is.
func errAbsent() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

func errConflict(r schema.GroupResource, name string) *apierrors.StatusError {
	return apierrors.NewConflict(r, name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// errOtherUID is said of an update of an object that is another one by now.
func errOtherUID(k *Kind, key types.NamespacedName, want, got types.UID) *apierrors.StatusError {
	where := k.Resource
	if !k.builtin {
		where = k.Group + "/" + k.Resource
	}
	return apierrors.NewConflict(k.resource(), key.Name, fmt.Errorf("StorageError: invalid object, Code: 4, Key: /registry/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s", where, revisions.PathOf(key), want, got))
}

// errUnreadable is said of a stored object that cannot be converted.
func errUnreadable(k *Kind, obj *object.Object, cause error) *apierrors.StatusError {
	return apierrors.NewInternalError(fmt.Errorf("StorageError: corrupt object, Code: 7, Key: /%s/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=%d: %w", k.Group, k.Resource, revisions.PathOf(obj.Key()), obj.Revision(), cause))
}

// errRecord is said of a deletion of an object that is another one by now.
func errRecord(k *Kind, name, field, want, got, happened string) *apierrors.StatusError {
	return apierrors.NewConflict(schema.GroupResource{Group: k.Group, Resource: k.Kind}, name, fmt.Errorf("the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s", field, want, field, got, happened))
}

func errInvalid(kind schema.GroupKind, name, field, message string) *apierrors.StatusError {
	err := apierrors.NewInvalid(kind, name, nil)
	err.ErrStatus.Message = fmt.Sprintf("%s %q is invalid: %s: %s", kind, name, field, message)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: message}}
	return err
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
