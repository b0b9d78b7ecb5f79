// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
)

// uncallable is why a webhook has given no answer that can be used.
type uncallable struct {
	webhook string
	cause   error
}

func (u *uncallable) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", u.webhook, u.cause)
}

func (u *uncallable) Unwrap() error { return u.cause }

// review asks a webhook about a write. The objects are of kind as.
func (a *Admission) review(ctx context.Context, h *hook, call *Call, as *kinds.Kind, obj, old *object.Object) (*admissionv1.AdmissionResponse, error) {
	if call.DryRun && !h.rehearses() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", h.Name))
	}
	version := h.version()
	if version == "" {
		return nil, &uncallable{h.Name, errors.New("could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)")}
	}
	request, err := a.reviewRequest(call, as, obj, old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	review := admissionv1.AdmissionReview{Request: request}
	review.APIVersion, review.Kind = admissionv1.GroupName+"/"+version, "AdmissionReview"
	ctx, cancel := context.WithTimeout(ctx, h.timeout())
	defer cancel()
	client := webhookClient{dialer: a.Dialer, url: h.ClientConfig.URL, bundle: h.ClientConfig.CABundle, timeout: h.timeout()}
	if service := h.ClientConfig.Service; service != nil {
		client.service(service.Namespace, service.Name, service.Path, service.Port)
	}
	body, err := client.post(ctx, review)
	if err != nil {
		return nil, &uncallable{h.Name, fmt.Errorf("failed to call webhook: %w", err)}
	}
	var answer admissionv1.AdmissionReview
	if err := decodeReview(body, review.GroupVersionKind(), &answer); err != nil {
		return nil, &uncallable{h.Name, fmt.Errorf("failed to call webhook: %w", err)}
	}
	if err := verify(h, &review, &answer); err != nil {
		return nil, &uncallable{h.Name, fmt.Errorf("received invalid webhook response: %w", err)}
	}
	for _, text := range answer.Response.Warnings {
		call.Warn(text)
	}
	if !answer.Response.Allowed {
		return nil, Denied(h.Name, answer.Response.Result)
	}
	return answer.Response, nil
}

// decodeReview reads what a webhook has answered.
func decodeReview(body []byte, want schema.GroupVersionKind, into any) error {
	given, err := decode.KindIn(body)
	if err != nil {
		return err
	}
	if given.Version != "" && given.GroupVersion() != want.GroupVersion() {
		return fmt.Errorf("converting (%s) to (%s): unknown conversion", kinds.GoType(given), kinds.GoType(want))
	}
	return json.Unmarshal(body, into)
}

// verify holds the answer of a webhook against the question.
func verify(h *hook, asked, answer *admissionv1.AdmissionReview) error {
	r := answer.Response
	if r == nil {
		return errors.New("webhook response was absent")
	}
	if h.version() == "v1" {
		if r.UID != asked.Request.UID {
			return fmt.Errorf("expected response.uid=%q, got %q", asked.Request.UID, r.UID)
		}
		if want, got := asked.GroupVersionKind(), answer.GroupVersionKind(); want != got {
			return fmt.Errorf("expected webhook response of %v, got %v", want.String(), got.String())
		}
	} else if len(r.Patch) > 0 && r.PatchType == nil {
		r.PatchType = new(admissionv1.PatchTypeJSONPatch)
	}
	return verifyPatch(r, h.mutating)
}

func verifyPatch(r *admissionv1.AdmissionResponse, mutating bool) error {
	switch {
	case !mutating && len(r.Patch) > 0:
		return errors.New("validating webhook may not return response.patch")
	case !mutating && r.PatchType != nil:
		return errors.New("validating webhook may not return response.patchType")
	case len(r.Patch) > 0 && r.PatchType == nil:
		return errors.New("webhook returned response.patch but not response.patchType")
	case len(r.Patch) == 0 && r.PatchType != nil:
		return errors.New("webhook returned response.patchType but not response.patch")
	case r.PatchType != nil && *r.PatchType == "":
		return fmt.Errorf("webhook returned invalid response.patchType of %q", *r.PatchType)
	}
	return nil
}

// Denied is the refusal of a webhook.
func Denied(webhook string, result *metav1.Status) *apierrors.StatusError {
	status := metav1.Status{}
	if result != nil {
		status = *result
	}
	status.Code = max(status.Code, http.StatusBadRequest)
	if status.Status != metav1.StatusFailure {
		status.Status = metav1.StatusFailure
	}
	denied := fmt.Sprintf("admission webhook %q denied the request", webhook)
	switch {
	case status.Message != "":
		status.Message = denied + ": " + status.Message
	case status.Reason != "":
		status.Message = denied + ": " + string(status.Reason)
	default:
		status.Message = denied + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// reviewRequest is the question about a write.
func (a *Admission) reviewRequest(call *Call, as *kinds.Kind, obj, old *object.Object) (*admissionv1.AdmissionRequest, error) {
	request := &admissionv1.AdmissionRequest{
		UID:                reviewUID(a.Seed, int(a.reviews.Add(1))),
		Kind:               metav1.GroupVersionKind(as.GroupVersionKind),
		Resource:           metav1.GroupVersionResource(as.GroupVersion().WithResource(as.Resource)),
		SubResource:        call.Subresource,
		RequestKind:        new(metav1.GroupVersionKind(call.Kind.GroupVersionKind)),
		RequestResource:    new(metav1.GroupVersionResource(call.Kind.GroupVersion().WithResource(call.Kind.Resource))),
		RequestSubResource: call.Subresource,
		Name:               call.Name,
		Namespace:          call.Namespace,
		Operation:          admissionv1.Operation(call.Operation),
		UserInfo:           call.userInfo(),
		DryRun:             &call.DryRun,
	}
	if request.Name == "" && obj != nil {
		request.Name = obj.Meta().GetName()
	}
	if isNamespace(call.Kind) {
		request.Namespace = request.Name
	}
	var err error
	if request.Object.Raw, err = rawOf(obj, as); err != nil {
		return nil, err
	}
	if request.OldObject.Raw, err = rawOf(old, as); err != nil {
		return nil, err
	}
	request.Options.Raw, err = json.Marshal(call.options())
	return request, err
}

// rawOf is an object as a webhook reads it; nil: there is none.
func rawOf(obj *object.Object, as *kinds.Kind) ([]byte, error) {
	if obj == nil {
		return nil, nil
	}
	return json.Marshal(kinds.Loose(obj, as).Object)
}

// userInfo is who writes, as webhooks are told.
func (call *Call) userInfo() authenticationv1.UserInfo {
	u := call.User
	info := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for name, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[name] = values
	}
	return info
}

// options are those of the request, as webhooks are told.
func (call *Call) options() any {
	var query url.Values
	if call.URL != nil {
		query = call.URL.Query()
	}
	of := metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "UpdateOptions"}
	manager, validation := query.Get("fieldManager"), query.Get("fieldValidation")
	switch {
	case call.Operation == "CREATE":
		of.Kind = "CreateOptions"
		return metav1.CreateOptions{TypeMeta: of, DryRun: query["dryRun"], FieldManager: manager, FieldValidation: validation}
	case call.Operation == "DELETE":
		var options metav1.DeleteOptions
		if call.Deleting != nil {
			options = *call.Deleting
		}
		of.Kind = "DeleteOptions"
		options.TypeMeta = of
		return options
	}
	return metav1.UpdateOptions{TypeMeta: of, DryRun: query["dryRun"], FieldManager: manager, FieldValidation: validation}
}

// reviewUID is the identity of one question, drawn from the seed.
func reviewUID(seed uint64, ordinal int) types.UID {
	draw := seededrand.Random(seed, "review", "", ordinal)
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", draw.Uint32(), draw.IntN(1<<16), draw.IntN(1<<12), draw.IntN(1<<12), draw.Uint64()>>16))
}
