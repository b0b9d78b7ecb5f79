// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/headroom"
	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/kube"
)

// resultsOf are the meanings of this module's own errors.
var resultsOf = []struct {
	err    error
	result result
}{
	{errors.ErrUnsupported, resultRejected},
	{pacing.ErrHeld, ResultHeld},
	{base.ErrSlow, resultSlow},
	{base.ErrEndless, ResultEndless},
	{base.ErrStuck, resultStuck},
	{base.ErrOlder, resultOlder},
	{base.ErrMixed, resultExpired},
	{base.ErrSilent, ResultSilent},
	{base.ErrOverdue, ResultEnded},
	{ErrDemanded, ResultDemanded},
}

// Classify returns the meaning of an error of a list or watch.
func Classify(err error) (r result, retryAfter time.Duration) {
	if e, ok := errors.AsType[*kube.NotServedError](err); ok {
		if e.Unlisted {
			return resultUnlisted, 0
		}
		return resultNotServed, 0
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return classifyStatus(err, status.Status())
	}
	if _, ok := errors.AsType[*kube.TooLargeError](err); ok {
		return resultOversized, 0
	}
	if _, ok := errors.AsType[*headroom.NoRoomError](err); ok {
		return resultNoRoom, 0
	}
	for _, known := range resultsOf {
		if errors.Is(err, known.err) {
			return known.result, 0
		}
	}
	switch {
	case base.IsNetwork(err):
		return ResultUnreachable, 0
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ResultCut, 0
	case errors.Is(err, io.EOF):
		return ResultEnded, 0
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
	case code == http.StatusBadRequest && isAboutSelectors(status.Message):
		return resultUnselectable, 0
	case code >= http.StatusInternalServerError, code == http.StatusRequestTimeout, retryAfter > 0, code == 0:
		if code == http.StatusNotImplemented {
			return resultRejected, 0
		}
		return resultFailing, retryAfter
	}
	return resultRejected, 0
}

// isAboutSelectors reports whether the message is that of servers about a field selector by
// which the kind cannot be selected.
func isAboutSelectors(message string) bool {
	return strings.Contains(message, "field label not supported") || strings.Contains(message, "is not a known field selector")
}
