// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verdict returns the Status that denies a request with err: that of err if it has one,
// else Forbidden.
func verdict(err error) *metav1.Status {
	status := metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	if own := apierrors.APIStatus(nil); errors.As(err, &own) {
		status = own.Status()
		if status.Code < http.StatusBadRequest {
			status.Code = http.StatusForbidden
		}
	}
	status.TypeMeta = metav1.TypeMeta{}
	status.Status = metav1.StatusFailure
	status.Message = err.Error()
	return &status
}

// httpError means that a request has no verdict: the server receives an HTTP error and
// a Status to show to the user.
type httpError struct {
	code   int
	reason metav1.StatusReason
	cause  error
	stack  []byte // of a panic
}

func (e *httpError) Error() string { return e.cause.Error() }

func (e *httpError) Unwrap() error { return e.cause }

func (e *httpError) body() []byte {
	text, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(e.code),
		Reason:   e.reason,
		Message:  e.cause.Error(),
	})
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

func badRequest(format string, args ...any) *httpError {
	return &httpError{code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, cause: fmt.Errorf(format, args...)}
}

func internal(cause error) *httpError {
	return &httpError{code: http.StatusInternalServerError, reason: metav1.StatusReasonInternalError, cause: cause}
}
