// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhooks asks the admission and conversion webhooks that are configured:
// which of them a write concerns, what they are asked, and what their answers make
// of it. A write is asked about without a lock, and again when it has to be tried
// again. The package sees kinds, what is stored through Objects, and the network
// through a Road.
package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Admission asks the webhooks that are configured. Without any it costs
// a look. It is called without a lock, and more than once for a write that has to
// be tried again.
type Admission struct {
	Dialer  Dialer
	Seed    uint64
	Objects Objects
	hooks   hooks
	reviews atomic.Int64 // questions so far
}

// Objects is where webhooks find what is stored.
type Objects interface {
	// Get is one object; nil: there is none.
	Get(r schema.GroupResource, key types.NamespacedName) *object.Object
	// Lists are the objects of some resources, all at one revision.
	Lists(of ...schema.GroupResource) [][]*object.Object
}

// exempt are kinds whose writes no webhook is asked about: it could never be
// mended.
var exempt = []string{
	"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
}

// configured are the webhooks of a kind of configuration.
func (a *Admission) configured(r schema.GroupResource, call *Call) []*hook {
	if call.Kind.Group == mutatingConfigurations.Group && slices.Contains(exempt, call.Kind.Kind) {
		return nil
	}
	configurations := a.Objects.Lists(r)[0]
	if len(configurations) == 0 {
		return nil
	}
	return a.hooks.of(configurations, r == mutatingConfigurations)
}

// Mutate asks the mutating webhooks one after the other. Those that want to be
// asked again are, once, when a later one has changed the object.
func (a *Admission) Mutate(ctx context.Context, call *Call) error {
	all := a.configured(mutatingConfigurations, call)
	var asked, again []*hook
	for _, h := range all {
		was, changed, err := a.change(ctx, h, call)
		if err != nil {
			return err
		}
		if changed {
			again = append(again, asked...)
			asked = nil
		}
		if was && h.again() {
			asked = append(asked, h)
		}
	}
	for _, h := range again {
		if _, _, err := a.change(ctx, h, call); err != nil {
			return err
		}
	}
	return nil
}

// change asks one mutating webhook, and does to the object what it says.
func (a *Admission) change(ctx context.Context, h *hook, call *Call) (asked, changed bool, err error) {
	as, err := a.matches(ctx, h, call)
	if as == nil || err != nil {
		return false, false, err
	}
	obj, old, err := call.as(as)
	if err != nil {
		return false, false, apierrors.NewInternalError(err)
	}
	response, err := a.review(ctx, h, call, as, obj, old)
	if err == nil {
		obj, err = patchedBy(h, response, as, obj)
	}
	if err != nil {
		return true, false, a.failure(ctx, h, err)
	}
	if obj == nil {
		return true, false, nil
	}
	if obj, err = kinds.Convert(obj, as, call.Kind); err != nil {
		return true, false, apierrors.NewInternalError(err)
	}
	changed = !object.Same(call.Object, obj)
	call.Object = obj
	return true, changed, nil
}

// patchedBy is the object as a webhook wants it; nil: as it is.
func patchedBy(h *hook, response *admissionv1.AdmissionResponse, as *kinds.Kind, obj *object.Object) (*object.Object, error) {
	if len(response.Patch) == 0 {
		return nil, nil
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	switch {
	case err != nil:
		return nil, &uncallable{h.Name, fmt.Errorf("received undecodable patch in webhook response: %w", err)}
	case len(patch) == 0:
		return nil, nil
	case obj == nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", h.Name))
	case *response.PatchType != admissionv1.PatchTypeJSONPatch:
		return nil, &uncallable{h.Name, fmt.Errorf("unsupported patch type %q", *response.PatchType)}
	}
	original, err := json.Marshal(kinds.Loose(obj, as).Object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	text, err := decode.ApplyPatch(patch, original)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	next, _, err := decode.Object(as, encode.ContentJSON, text)
	if err != nil {
		return nil, apierrors.NewInternalError(errors.New(decode.CauseOf(err)))
	}
	return next, nil
}

// Validate asks all validating webhooks. A real server asks them at the same
// time; here it is one after the other, so that one history follows from one
// seed.
func (a *Admission) Validate(ctx context.Context, call *Call) (first error) {
	var matching []*hook
	kinds := map[*hook]*kinds.Kind{}
	for _, h := range a.configured(validatingConfigurations, call) {
		as, err := a.matches(ctx, h, call)
		if err != nil {
			return err
		}
		if as != nil {
			matching, kinds[h] = append(matching, h), as
		}
	}
	for _, h := range matching {
		obj, old, err := call.as(kinds[h])
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if _, err := a.review(ctx, h, call, kinds[h], obj, old); err != nil {
			if err = a.failure(ctx, h, err); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

// failure is what a write is refused with when a webhook has refused it or has
// not answered; nil: it may pass all the same.
func (a *Admission) failure(ctx context.Context, h *hook, err error) error {
	silent := (*uncallable)(nil)
	switch {
	case !errors.As(err, &silent):
		return err
	case !h.tolerant():
		return apierrors.NewInternalError(silent)
	case ctx.Err() != nil:
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
	return nil
}

// as are the objects of a write in another version.
func (call *Call) as(kind *kinds.Kind) (obj, old *object.Object, err error) {
	if call.Object != nil {
		if obj, err = kinds.Convert(call.Object, call.Kind, kind); err != nil {
			return nil, nil, err
		}
	}
	if call.Old != nil {
		old, err = kinds.Convert(call.Old, call.Kind, kind)
	}
	return obj, old, err
}

// matches is the kind that a webhook is to be asked about; nil: it is not asked.
func (a *Admission) matches(ctx context.Context, h *hook, call *Call) (*kinds.Kind, error) {
	as := h.invocation(call)
	if as == nil || !a.concerns(h, call) {
		return nil, nil
	}
	if h.conditions == nil {
		return as, nil
	}
	obj, old, err := call.as(as)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	met, err := h.met(ctx, call, as, obj, old)
	if err != nil {
		return nil, apierrors.NewForbidden(call.Kind.GroupResource(), call.Name, err)
	}
	if !met {
		return nil, nil
	}
	return as, nil
}
