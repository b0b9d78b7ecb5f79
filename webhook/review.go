// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/decodelimit"
)

// admitFunc is a function of Validate or Mutate without type parameters. It returns a
// patch, or the error that denies the request.
type admitFunc func(ctx context.Context, req *Request) (patch []byte, err error)

// admission answers AdmissionReviews with admit. plan and cost estimate its memory.
func admission(plan *decodelimit.JSONPlan, cost func(decodelimit.Weight) int64, admit admitFunc) hook {
	return func(ctx context.Context, body []byte, room *decoding) ([]byte, outcome, error) {
		if err := isReview(body, admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"), "admissionReviewVersions"); err != nil {
			return nil, failed, err
		}
		bytes, err := room.weigh(body, plan, cost)
		if err != nil {
			return nil, failed, err
		}
		leave, err := room.enter(ctx, bytes)
		if err != nil {
			return nil, failed, err
		}
		defer leave()
		req, err := decodeAdmission(body)
		if err != nil {
			return nil, failed, err
		}
		// The error's own methods are code of the function too, and may panic.
		response, err := guarded(func() (*admissionv1.AdmissionResponse, error) {
			patch, err := admit(ctx, req)
			if fault := faultOf(ctx, err); fault != nil {
				return nil, fault
			}
			return respond(req, patch, err), nil
		})
		if err != nil {
			return nil, failed, err
		}
		end := passed
		if !response.Allowed {
			end = denied
		}
		answer, err := json.Marshal(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
			Response: response,
		})
		if err != nil {
			return nil, failed, internal(fmt.Errorf("encode the answer: %w", err))
		}
		return answer, end, nil
	}
}

func decodeAdmission(body []byte) (*Request, error) {
	var review admissionv1.AdmissionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &review); err != nil {
		return nil, badRequest("decode AdmissionReview: %w", err)
	}
	switch {
	case review.Request == nil:
		return nil, badRequest("the AdmissionReview has no request")
	case review.Request.UID == "":
		return nil, badRequest("the request of the AdmissionReview has no uid, so no answer could be matched to it")
	}
	return &Request{AdmissionRequest: *review.Request}, nil
}

// respond returns the answer to req: denied if err is not nil, else admitted with
// patch.
func respond(req *Request, patch []byte, err error) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{
		UID:              req.UID,
		Allowed:          err == nil,
		Warnings:         req.warnings,
		AuditAnnotations: req.annotations,
	}
	switch {
	case err != nil:
		response.Result = verdict(err)
	case len(patch) > 0:
		response.Patch, response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	}
	return response
}

// isReview returns an error if body is not JSON or of another kind or version.
func isReview(body []byte, want schema.GroupVersionKind, option string) error {
	var is metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &is); err != nil {
		return badRequest("decode %s: %w", want.Kind, err)
	}
	got := is.GroupVersionKind()
	switch {
	case got == want:
		return nil
	case got.Group == want.Group && got.Kind == want.Kind:
		return badRequest("%s of version %q: this webhook understands %s alone; set %s: [%s]",
			want.Kind, got.Version, want.Version, option, want.Version)
	}
	return badRequest("the body is no %s: apiVersion %q, kind %q; does the path belong to another webhook?", want.Kind, is.APIVersion, is.Kind)
}

// guarded calls f and converts a panic to an error.
func guarded[R any](f func() (R, error)) (result R, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &httpError{
				code:   http.StatusInternalServerError,
				reason: metav1.StatusReasonInternalError,
				cause:  fmt.Errorf("panic in the webhook: %v", p),
				stack:  debug.Stack(),
			}
		}
	}()
	return f()
}

// faultOf returns err if it is not a verdict: a panic, a request that the function does
// not support, or the server's timeout.
func faultOf(ctx context.Context, err error) error {
	var fault *httpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		return fault
	case ctx.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)):
		return &httpError{
			code:   http.StatusGatewayTimeout,
			reason: metav1.StatusReasonTimeout,
			cause:  fmt.Errorf("the webhook was not done when the request ended: %w", err),
		}
	}
	return nil
}
