// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// Clients know a refusal by its reason and code, and read its message.
func TestRefusals_AreKnownToClients(t *testing.T) {
	r, kind := schema.GroupResource{Resource: "pods"}, schema.GroupKind{Kind: "Pod"}
	tooLarge := func(err error) bool { return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) }
	for _, c := range []struct {
		err  *apierrors.StatusError
		is   func(error) bool
		code int32
		text string
	}{
		{refusal.TooOld(3, 7), apierrors.IsResourceExpired, 410, "too old resource version: 3 (7)"},
		{refusal.ListTooOld(), apierrors.IsResourceExpired, 410, "The resourceVersion for the provided list is too old."},
		{refusal.TooLarge(9, 7), tooLarge, 504, "Timeout: Too large resource version: 9, current: 7"},
		{refusal.Plain(errors.New("x")), func(err error) bool { return apierrors.ReasonForError(err) == "" }, 500, "x"},
		{refusal.Method(), apierrors.IsMethodNotSupported, 405, "the server does not allow this method on the requested resource"},
		{refusal.Media("a/b", "c/d"), apierrors.IsUnsupportedMediaType, 415, "the body of the request was in an unknown format - accepted media types include: a/b, c/d"},
		{refusal.Absent(), apierrors.IsNotFound, 404, "the server could not find the requested resource"},
		{refusal.Conflict(r, "a"), apierrors.IsConflict, 409, `Operation cannot be fulfilled on pods "a": the object has been modified; please apply your changes to the latest version and try again`},
		{refusal.Invalid(kind, "a", "spec.x", "must be y"), apierrors.IsInvalid, 422, `Pod "a" is invalid: spec.x: must be y`},
		{refusal.Overload(429, 5), apierrors.IsTooManyRequests, 429, "too many requests, please try again later"},
		{refusal.Overload(500, 5), apierrors.IsInternalError, 500, "Internal error occurred: etcdserver: request timed out"},
		{refusal.Overload(503, 5), apierrors.IsServiceUnavailable, 503, "the server is currently unable to handle the request"},
	} {
		if !c.is(c.err) || c.err.ErrStatus.Code != c.code || c.err.Error() != c.text {
			t.Errorf("got %+v, want code %d, its reason and %q", c.err.ErrStatus, c.code, c.text)
		}
	}
	for _, code := range []int{429, 503} {
		if seconds, ok := apierrors.SuggestsClientDelay(refusal.Overload(code, 5)); !ok || seconds != 5 {
			t.Errorf("%d tells clients to wait for %d s (%v), want 5", code, seconds, ok)
		}
	}
}
