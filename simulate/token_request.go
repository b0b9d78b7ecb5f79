// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

const (
	usualTokenSeconds    = 3600
	shortestTokenSeconds = 600
	longestTokenSeconds  = 1 << 32
)

var tokenRequestKind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")

// issueToken answers the creation of a ServiceAccount's token. Nothing is
// stored.
func (s *Server) issueToken(w http.ResponseWriter, c *call) error {
	q, err := c.writing()
	if err != nil {
		return err
	}
	asked, err := decodeOwn[authenticationv1.TokenRequest](q, tokenRequestKind)
	if err != nil {
		return err
	}
	if asked.Namespace != "" && asked.Namespace != c.namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if err := s.housed(q, c.name); err != nil {
		return err
	}
	account := s.held("serviceaccounts", c.namespace, c.name)
	if account == nil {
		return apierrors.NewNotFound(c.kind.GroupResource(), c.name)
	}
	if asked.Name != "" && asked.Name != c.name {
		return apierrors.NewInvalid(tokenRequestKind.GroupKind(), c.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), asked.Name, "must match the service account name if specified")})
	}
	defaults.OrElse(&asked.Spec.ExpirationSeconds, usualTokenSeconds)
	if errs := checkTokenSeconds(*asked.Spec.ExpirationSeconds); len(errs) > 0 {
		return apierrors.NewInvalid(tokenRequestKind.GroupKind(), "", errs)
	}
	if len(asked.Spec.Audiences) == 0 {
		asked.Spec.Audiences = []string{tokenIssuer}
	}
	m := account.Meta()
	of := accountClaims{Namespace: c.namespace, Account: boundTo{m.GetName(), m.GetUID()}}
	if err := s.bindToken(&of, asked.Spec.BoundObjectRef); err != nil {
		return err
	}
	at := jsonvalue.Now()
	until := at.Add(time.Duration(*asked.Spec.ExpirationSeconds) * time.Second)
	token, err := s.sign(claims{
		Audience: asked.Spec.Audiences, Issuer: tokenIssuer, ID: s.tokenID(), Subject: accountUser(c.namespace, c.name),
		IssuedAt: at.Unix(), NotBefore: at.Unix(), Expiry: until.Unix(), Kubernetes: of,
	})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	asked.Name, asked.Namespace, asked.UID, asked.CreationTimestamp = c.name, c.namespace, m.GetUID(), at
	asked.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(until)}
	return s.respondTyped(w, q, http.StatusCreated, tokenRequestKind, asked)
}

func checkTokenSeconds(n int64) field.ErrorList {
	path := field.NewPath("spec", "expirationSeconds")
	switch {
	case n < shortestTokenSeconds:
		return field.ErrorList{field.Invalid(path, n, "may not specify a duration less than 10 minutes")}
	case n > longestTokenSeconds:
		return field.ErrorList{field.Invalid(path, n, "may not specify a duration larger than 2^32 seconds")}
	}
	return nil
}

// bindToken has a token count only as long as another object is there.
func (s *Server) bindToken(of *accountClaims, ref *authenticationv1.BoundObjectReference) error {
	if ref == nil {
		return nil
	}
	resources := map[string]string{"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
	resource := resources[ref.Kind]
	if resource == "" || ref.APIVersion != "v1" {
		gv, _ := schema.ParseGroupVersion(ref.APIVersion) // what cannot be parsed is shown as empty
		return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", gv.WithKind(ref.Kind)))
	}
	namespace := of.Namespace
	if resource == "nodes" {
		namespace = ""
	}
	obj := s.held(resource, namespace, ref.Name)
	if obj == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, ref.Name)
	}
	uid := obj.Meta().GetUID()
	if ref.UID != "" && ref.UID != uid {
		return apierrors.NewConflict(schema.GroupResource{Resource: ref.Kind}, ref.Name, fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	bound := &boundTo{ref.Name, uid}
	switch resource {
	case "secrets":
		of.Secret = bound
	case "nodes":
		of.Node = bound
	case "pods":
		spec, _ := obj.Fields["spec"].(map[string]any)
		if account, _ := spec["serviceAccountName"].(string); account != of.Account.Name {
			return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", of.Account.Name))
		}
		of.Pod = bound
		if node := object.NodeOf(obj); node != "" {
			of.Node = &boundTo{Name: node}
			if held := s.held("nodes", "", node); held != nil {
				of.Node.UID = held.Meta().GetUID()
			}
		}
	}
	return nil
}

func (s *Server) tokenID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.uidLocked())
}
