// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// met reports whether the conditions of a webhook are true of a write.
func (h *hook) met(ctx context.Context, call *Call, as *kinds.Kind, obj, old *object.Object) (bool, error) {
	who := &user.DefaultInfo{Name: call.User.Name, UID: call.User.UID, Groups: call.User.Groups, Extra: call.User.Extra}
	name := call.Name
	if name == "" && obj != nil {
		name = obj.Meta().GetName()
	}
	written := apiserveradmission.NewAttributesRecord(
		plainObject(obj, as), plainObject(old, as), call.Kind.GroupVersionKind, call.Namespace, name,
		call.Kind.GroupVersion().WithResource(call.Kind.Resource), call.Subresource, apiserveradmission.Operation(call.Operation), nil, call.DryRun, who)
	versioned := &apiserveradmission.VersionedAttributes{Attributes: written, VersionedKind: as.GroupVersionKind}
	if obj != nil {
		versioned.VersionedObject = apiserveradmission.NewLazyObject(plainObject(obj, as))
	}
	if old != nil {
		versioned.VersionedOldObject = apiserveradmission.NewLazyObject(plainObject(old, as))
	}
	result := h.conditions().Match(ctx, versioned, nil, everybody{})
	return result.Matches, result.Error
}

// plainObject is an object as conditions see it; nil: there is none.
func plainObject(obj *object.Object, as *kinds.Kind) runtime.Object {
	if obj == nil {
		return nil
	}
	return kinds.Loose(obj, as)
}

// everybody lets all pass: conditions that ask for somebody's rights get a yes.
type everybody struct{}

// Authorize says yes.
func (everybody) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}
