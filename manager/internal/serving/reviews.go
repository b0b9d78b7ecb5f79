// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/codec"
	"github.com/flyball-dev/flyball/internal/redact"
)

const (
	reviewTimeout = 10 * time.Second // of one review, including the wait for a slot
	mostReviews   = 8                // concurrent: a flood of unknown tokens must not reach the API server
)

type reviews struct {
	rest  rest.Interface
	turns chan struct{}
}

func newReviews(cfg *rest.Config) (*reviews, error) {
	cfg = rest.CopyConfig(cfg)
	_, serializer, err := codec.For(authenticationv1.AddToScheme, authorizationv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	cfg.NegotiatedSerializer = serializer
	cfg.ContentType, cfg.AcceptContentTypes = "application/json", "application/json"
	c, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	return &reviews{c, make(chan struct{}, mostReviews)}, nil
}

// user returns the user of a token; nil: none.
func (r *reviews) user(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review.APIVersion, review.Kind = authenticationv1.SchemeGroupVersion.String(), "TokenReview"
	var answer authenticationv1.TokenReview
	if err := r.ask(ctx, "authentication.k8s.io", "tokenreviews", review, &answer); err != nil {
		return nil, err
	}
	if !answer.Status.Authenticated || answer.Status.User.Username == "" {
		return nil, nil
	}
	return &answer.Status.User, nil
}

func (r *reviews) allowed(ctx context.Context, asks authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: asks}
	review.APIVersion, review.Kind = authorizationv1.SchemeGroupVersion.String(), "SubjectAccessReview"
	var answer authorizationv1.SubjectAccessReview
	if err := r.ask(ctx, "authorization.k8s.io", "subjectaccessreviews", review, &answer); err != nil {
		return false, err
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}

// ask sends a review and decodes the server's answer into answer, which shares nothing
// with review.
func (r *reviews) ask(ctx context.Context, group, resource string, review, answer runtime.Object) error {
	ctx, cancel := context.WithTimeoutCause(ctx, reviewTimeout, errors.New("it took too long"))
	defer cancel()
	select {
	case r.turns <- struct{}{}:
		defer func() { <-r.turns }()
	case <-ctx.Done():
		return fmt.Errorf("create %s: wait for %d others: %w", resource, mostReviews, context.Cause(ctx))
	}
	// At a high verbosity client-go would log the body, and with it the token.
	ctx = logr.NewContext(ctx, logr.Discard())
	res := r.rest.Post().AbsPath("/apis", group, "v1", resource).Body(review).Do(ctx)
	err := redact.Error(res.Error())
	if err == nil {
		err = redact.Decoding(res.Into(answer))
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("create %s: %w; bind this program's ServiceAccount to the ClusterRole system:auth-delegator, "+
			"or to one with the rule {apiGroups: [%s], resources: [%s], verbs: [create]}", resource, err, group, resource)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", resource, err)
	}
	return nil
}
