// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/fieldmanager"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// review answers a review of rights, a user or a token. Nothing is stored.
func (h *Handler) review(w http.ResponseWriter, c *Call) error {
	q, err := c.write(c.Kind)
	if err != nil {
		return err
	}
	review, err := decode.TypedObject(c.Kind.GroupVersionKind, q.Media, q.Body)
	if err != nil {
		return err
	}
	if err := ownReview(q, review); err != nil {
		return err
	}
	if err := h.Access.Review(c.User, c.Namespace, review); err != nil {
		return err
	}
	return h.answerTyped(w, c, q, http.StatusCreated, c.Kind.GroupVersionKind, review)
}

// ownReview sets the managed fields of a review, as a real server does in all except those
// about the user who asks.
func ownReview(q *write.Request, review runtime.Object) error {
	m, ok := review.(metav1.Object)
	if !ok || q.Kind.Resource == "selfsubjectreviews" || q.Kind.Resource == "selfsubjectrulesreviews" {
		return nil
	}
	obj, err := kinds.ObjectOfTyped(q.Kind, review)
	if err != nil {
		return err
	}
	kind := *q.Kind
	kind.Schema, kind.Managers = kinds.Deduced(&kind), ownership.NewFieldManagers()
	writer := fieldmanager.Writer{Kind: &kind, Manager: q.Manager}
	if err := writer.Own(nil, obj); err != nil {
		return err
	}
	m.SetManagedFields(obj.Meta().GetManagedFields())
	return nil
}

// issueToken answers the creation of a ServiceAccount's token. Nothing is stored.
func (h *Handler) issueToken(w http.ResponseWriter, c *Call) error {
	q, asked, err := typedWrite[authenticationv1.TokenRequest](c, access.TokenRequestKind)
	if err != nil {
		return err
	}
	if asked.Namespace != "" && asked.Namespace != c.Namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if err := h.Writes.CheckNamespace(q, c.Name); err != nil {
		return err
	}
	if err := h.Access.IssueToken(c.Namespace, c.Name, asked, h.Writes.Allotter.UID); err != nil {
		return err
	}
	return h.answerTyped(w, c, q, http.StatusCreated, access.TokenRequestKind, asked)
}
