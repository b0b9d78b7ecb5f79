// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

const (
	usualTokenSeconds    = 3600
	shortestTokenSeconds = 600
	longestTokenSeconds  = 1 << 32
)

var TokenRequestKind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")

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
func (x *Control) bindToken(of *AccountClaims, ref *authenticationv1.BoundObjectReference) error {
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
	obj := x.held(resource, namespace, ref.Name)
	if obj == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, ref.Name)
	}
	uid := obj.Meta().GetUID()
	if ref.UID != "" && ref.UID != uid {
		return apierrors.NewConflict(schema.GroupResource{Resource: ref.Kind}, ref.Name, fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	bound := &BoundTo{ref.Name, uid}
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
			of.Node = &BoundTo{Name: node}
			if held := x.held("nodes", "", node); held != nil {
				of.Node.UID = held.Meta().GetUID()
			}
		}
	}
	return nil
}

// IssueToken fills in the status of a request for a token of a ServiceAccount. The token has
// an id of its own.
func (x *Control) IssueToken(namespace, name string, asked *authenticationv1.TokenRequest, id func() types.UID) error {
	account := x.held("serviceaccounts", namespace, name)
	if account == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, name)
	}
	if asked.Name != "" && asked.Name != name {
		return apierrors.NewInvalid(TokenRequestKind.GroupKind(), name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), asked.Name, "must match the service account name if specified")})
	}
	if asked.Spec.ExpirationSeconds == nil {
		asked.Spec.ExpirationSeconds = new(int64(usualTokenSeconds))
	}
	if errs := checkTokenSeconds(*asked.Spec.ExpirationSeconds); len(errs) > 0 {
		return apierrors.NewInvalid(TokenRequestKind.GroupKind(), "", errs)
	}
	if len(asked.Spec.Audiences) == 0 {
		asked.Spec.Audiences = []string{x.issuer()}
	}
	uid := account.Meta().GetUID()
	of := AccountClaims{Namespace: namespace, Account: BoundTo{Name: name, UID: uid}}
	if err := x.bindToken(&of, asked.Spec.BoundObjectRef); err != nil {
		return err
	}
	at := object.Now()
	until := at.Add(time.Duration(*asked.Spec.ExpirationSeconds) * time.Second)
	token, err := x.Sign(Claims{
		Audience: asked.Spec.Audiences, Issuer: x.issuer(), ID: string(id()), Subject: AccountUser(namespace, name),
		IssuedAt: at.Unix(), NotBefore: at.Unix(), Expiry: until.Unix(), Kubernetes: of,
	})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	asked.Name, asked.Namespace, asked.UID, asked.CreationTimestamp = name, namespace, uid, at
	asked.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(until)}
	return nil
}
