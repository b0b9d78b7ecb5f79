// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/keypair"
)

const tokenLife = 24 * time.Hour

// User returns a configuration that authenticates with a client certificate as the user name in groups. The user has only
// the permissions that RBAC grants to everyone, to name, or to groups. User sends no request.
func (e *Environment) User(name string, groups ...string) (*rest.Config, error) {
	if name == "" {
		return nil, errors.New("make a user: it needs a name")
	}
	user, err := e.users.Client(time.Now(), name, groups...)
	if err != nil {
		return nil, fmt.Errorf("make the user %q: %w", name, err)
	}
	return e.configFor(user), nil
}

// TokenUser returns a configuration that authenticates with a bearer token, valid for a day, as the service account name in
// namespace. It creates both if needed. The user is system:serviceaccount:namespace:name and has only the permissions that
// RBAC grants.
func (e *Environment) TokenUser(ctx context.Context, namespace, name string) (*rest.Config, error) {
	token, err := e.serviceAccountToken(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("make a token of the service account %s/%s: %w", namespace, name, err)
	}
	cfg := e.configFor(keypair.Encoded{})
	cfg.BearerToken = token
	return cfg, nil
}

func (e *Environment) serviceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	if err := e.ensure(ctx, "/api/v1/namespaces", "Namespace", namespace); err != nil {
		return "", err
	}
	accounts := "/api/v1/namespaces/" + namespace + "/serviceaccounts"
	if err := e.ensure(ctx, accounts, "ServiceAccount", name); err != nil {
		return "", err
	}
	request := fmt.Sprintf(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":%d}}`, int(tokenLife.Seconds()))
	answer, err := e.api.do(ctx, http.MethodPost, accounts+"/"+name+"/token", "application/json", []byte(request))
	if err != nil {
		return "", err
	}
	var given struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	err = json.Unmarshal(answer, &given)
	return given.Status.Token, err
}

// ensure creates the object name of a kind of the core group unless it exists.
func (e *Environment) ensure(ctx context.Context, collection, kind, name string) error {
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}})
	if err != nil {
		return err
	}
	_, err = e.api.do(ctx, http.MethodPost, collection, "application/json", body)
	if answer, ok := errors.AsType[*answerError](err); ok && answer.code == http.StatusConflict {
		return nil
	}
	return err
}
