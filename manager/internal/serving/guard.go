// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Lifetimes of cached answers: those of controller-runtime's guard, for which operators
// are set up today. The Kubernetes components default to ten seconds each
// (authentication-token-webhook-cache-ttl and similar flags), with several times the
// requests.
const (
	userKept    = time.Minute
	allowedKept = 5 * time.Minute
	deniedKept  = 30 * time.Second
)

// Guard passes only the requests that the API server authorizes, and none while it
// cannot be asked.
type Guard struct {
	next    http.Handler
	reviews *reviews
	log     logr.Logger

	users   *verdicts[*authenticationv1.UserInfo] // nil: the token is invalid
	allowed *verdicts[bool]
}

// NewGuard returns a guard before next that uses the server of cfg. It sends nothing.
func NewGuard(cfg *rest.Config, log logr.Logger, next http.Handler) (*Guard, error) {
	r, err := newReviews(cfg)
	if err != nil {
		return nil, err
	}
	return &Guard{next, r, log, newVerdicts[*authenticationv1.UserInfo](), newVerdicts[bool]()}, nil
}

// Remembered returns the number of cached answers.
func (g *Guard) Remembered() int { return g.users.remembered() + g.allowed.remembered() }

// ServeHTTP answers as the Kubernetes components do: 401 without a valid token, 403
// without permission, and 503 if that cannot be determined.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := bearerToken(r.Header.Get("Authorization"))
	if token == "" {
		refuse(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	user, err := g.user(r.Context(), token)
	if err != nil {
		refuse(w, apierrors.NewServiceUnavailable("the API server could not be asked whose token this is"))
		return
	}
	if user == nil {
		refuse(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	verb, path := strings.ToLower(r.Method), r.URL.Path
	allowed, err := g.mayDo(r.Context(), user, verb, path)
	if err != nil {
		refuse(w, apierrors.NewServiceUnavailable(fmt.Sprintf("the API server could not be asked whether User %q can %s path %q", user.Username, verb, path)))
		return
	}
	if !allowed {
		says := fmt.Sprintf("User %q cannot %s path %q", user.Username, verb, path) // as the API server does
		refuse(w, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(says)))
		return
	}
	r.Header.Del("Authorization") // no handler needs the token
	g.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user.Username)))
}

type userKey struct{}

// UserOf returns the name of the user whose request a Guard has passed; empty: none.
func UserOf(ctx context.Context) string {
	name, _ := ctx.Value(userKey{}).(string)
	return name
}

// user returns the user of a token; nil: none.
func (g *Guard) user(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	return g.users.of(ctx, sha256.Sum256([]byte(token)), func(ctx context.Context) (verdict[*authenticationv1.UserInfo], error) {
		asked := time.Now()
		user, err := g.reviews.user(ctx, token)
		if user == nil {
			return verdict[*authenticationv1.UserInfo]{until: asked.Add(deniedKept)}, g.logged(ctx, err)
		}
		return verdict[*authenticationv1.UserInfo]{answer: user, yes: true, until: asked.Add(userKept)}, nil
	})
}

func (g *Guard) mayDo(ctx context.Context, user *authenticationv1.UserInfo, verb, path string) (bool, error) {
	asks := authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}
	for key, values := range user.Extra {
		asks.Extra[key] = authorizationv1.ExtraValue(values)
	}
	question, err := json.Marshal(asks)
	if err != nil {
		return false, err
	}
	return g.allowed.of(ctx, sha256.Sum256(question), func(ctx context.Context) (verdict[bool], error) {
		asked := time.Now()
		allowed, err := g.reviews.allowed(ctx, asks)
		kept := deniedKept
		if allowed {
			kept = allowedKept
		}
		return verdict[bool]{answer: allowed, yes: allowed, until: asked.Add(kept)}, g.logged(ctx, err)
	})
}

// logged logs why a review failed, unless the client has gone.
func (g *Guard) logged(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		g.log.Error(err, "Refused a request, because the API server could not be asked to authorize it")
	}
	return err
}

// bearerToken returns the token of a header; empty: there is none.
func bearerToken(header string) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(header), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "bearer") || strings.ContainsAny(token, " \t") {
		return ""
	}
	return token
}

func refuse(w http.ResponseWriter, why *apierrors.StatusError) {
	status := why.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	text, err := json.Marshal(status)
	if err != nil {
		text = []byte(errors.Join(why, err).Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if status.Code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(append(text, '\n')) // the client may have gone
}
