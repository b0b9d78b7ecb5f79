// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	errSilent  = errors.New("the server said nothing more on an open stream")
	errOverdue = errors.New("the server did not end the stream at its timeout")
	errSlow    = errors.New("the server did not complete a page of the list in time")
	errEndless = errors.New("the server did not end the streaming list in time")
	errStuck   = errors.New("the pages of the list do not advance")
	errOlder   = errors.New("the list is older than what was demanded")
	errMixed   = errors.New("they do not belong together")
)

// classify says what an error of a list or watch means.
func classify(err error) (r result, retryAfter time.Duration) {
	if _, ok := errors.AsType[*NotServedError](err); ok {
		return resultNotServed, 0
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return classifyStatus(err, status.Status())
	}
	if _, ok := errors.AsType[*TooLargeError](err); ok {
		return resultOversized, 0
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return resultRejected, 0
	case errors.Is(err, errHeld):
		return resultHeld, 0
	case errors.Is(err, errSlow):
		return resultSlow, 0
	case errors.Is(err, errEndless):
		return resultEndless, 0
	case errors.Is(err, errStuck):
		return resultStuck, 0
	case errors.Is(err, errOlder):
		return resultOlder, 0
	case errors.Is(err, errMixed):
		return resultExpired, 0
	case errors.Is(err, errSilent):
		return resultSilent, 0
	case errors.Is(err, errOverdue):
		return resultEnded, 0
	case errors.Is(err, errDemanded):
		return resultDemanded, 0
	case isNetwork(err):
		return resultUnreachable, 0
	case errors.Is(err, io.ErrUnexpectedEOF):
		return resultCut, 0
	case errors.Is(err, io.EOF):
		return resultEnded, 0
	}
	return resultGarbled, 0
}

func classifyStatus(err error, status metav1.Status) (result, time.Duration) {
	var retryAfter time.Duration
	if status.Details != nil {
		retryAfter = time.Duration(max(status.Details.RetryAfterSeconds, 0)) * time.Second
	}
	code := int(status.Code)
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge),
		apierrors.IsTimeout(err) && strings.Contains(status.Message, "Too large resource version"):
		return resultTooLarge, retryAfter
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), code == http.StatusGone:
		return resultExpired, 0
	case apierrors.IsUnauthorized(err):
		return resultUnauthorized, 0
	case apierrors.IsForbidden(err):
		return resultForbidden, 0
	case apierrors.IsTooManyRequests(err):
		return resultBusy, retryAfter
	case apierrors.IsNotFound(err):
		return resultNotServed, 0
	case code >= http.StatusInternalServerError, code == http.StatusRequestTimeout, retryAfter > 0, code == 0:
		if code == http.StatusNotImplemented {
			return resultRejected, 0
		}
		return resultFailing, retryAfter
	}
	return resultRejected, 0
}
