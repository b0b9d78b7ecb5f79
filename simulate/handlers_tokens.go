// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
)

// issueToken answers the creation of a ServiceAccount's token. Nothing is
// stored.
func (s *Server) issueToken(w http.ResponseWriter, c *call) error {
	q, asked, err := typedWrite[authenticationv1.TokenRequest](c, access.TokenRequestKind)
	if err != nil {
		return err
	}
	if asked.Namespace != "" && asked.Namespace != c.namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if err := s.writes.CheckNamespace(q, c.name); err != nil {
		return err
	}
	account := s.access.Held("serviceaccounts", c.namespace, c.name)
	if account == nil {
		return apierrors.NewNotFound(c.kind.GroupResource(), c.name)
	}
	if asked.Name != "" && asked.Name != c.name {
		return apierrors.NewInvalid(access.TokenRequestKind.GroupKind(), c.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), asked.Name, "must match the service account name if specified")})
	}
	defaults.OrElse(&asked.Spec.ExpirationSeconds, access.UsualTokenSeconds)
	if errs := access.CheckTokenSeconds(*asked.Spec.ExpirationSeconds); len(errs) > 0 {
		return apierrors.NewInvalid(access.TokenRequestKind.GroupKind(), "", errs)
	}
	if len(asked.Spec.Audiences) == 0 {
		asked.Spec.Audiences = []string{access.TokenIssuer}
	}
	m := account.Meta()
	of := access.AccountClaims{Namespace: c.namespace, Account: access.BoundTo{Name: m.GetName(), UID: m.GetUID()}}
	if err := s.access.BindToken(&of, asked.Spec.BoundObjectRef); err != nil {
		return err
	}
	at := jsonvalue.Now()
	until := at.Add(time.Duration(*asked.Spec.ExpirationSeconds) * time.Second)
	token, err := s.access.Sign(access.Claims{
		Audience: asked.Spec.Audiences, Issuer: access.TokenIssuer, ID: string(s.allotter.UID()), Subject: access.AccountUser(c.namespace, c.name),
		IssuedAt: at.Unix(), NotBefore: at.Unix(), Expiry: until.Unix(), Kubernetes: of,
	})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	asked.Name, asked.Namespace, asked.UID, asked.CreationTimestamp = c.name, c.namespace, m.GetUID(), at
	asked.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(until)}
	return s.answerTyped(w, c, q, http.StatusCreated, access.TokenRequestKind, asked)
}
