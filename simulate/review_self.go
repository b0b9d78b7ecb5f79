// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
)

// info is the user as reviews show it.
func (u User) info() authenticationv1.UserInfo {
	out := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if out.Extra == nil {
			out.Extra = map[string]authenticationv1.ExtraValue{}
		}
		out.Extra[key] = values
	}
	return out
}

// reviewSelf answers who asks.
func (s *Server) reviewSelf(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(_ *writing, r *authenticationv1.SelfSubjectReview) error {
		r.CreationTimestamp = jsonvalue.Now()
		r.Status.UserInfo = c.user.info()
		return nil
	})
}

// reviewToken answers who a token is of.
func (s *Server) reviewToken(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(_ *writing, r *authenticationv1.TokenReview) error {
		if r.Spec.Token == "" {
			return apierrors.NewBadRequest("token is required for TokenReview in authentication")
		}
		audiences := r.Spec.Audiences
		if len(audiences) == 0 {
			audiences = []string{tokenIssuer}
		}
		user, counts, err := s.bearer(r.Spec.Token, audiences)
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: err == nil, User: user.info(), Audiences: counts}
		if err != nil {
			r.Status.Error = err.Error()
		}
		return nil
	})
}

// reviewRules answers what rules there are for who asks, in a namespace.
func (s *Server) reviewRules(w http.ResponseWriter, c *call) error {
	return reviewed(s, w, c, func(_ *writing, r *authorizationv1.SelfSubjectRulesReview) error {
		if r.Spec.Namespace == "" {
			return apierrors.NewBadRequest("no namespace on request")
		}
		r.Status = authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
		add := func(rule *rbacv1.PolicyRule, _ string) bool {
			if len(rule.Resources) > 0 {
				r.Status.ResourceRules = append(r.Status.ResourceRules, authorizationv1.ResourceRule{
					Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
			}
			if len(rule.NonResourceURLs) > 0 {
				r.Status.NonResourceRules = append(r.Status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
			}
			return false
		}
		if !s.authorization {
			add(&everyResource, "")
			add(&everyPath, "")
		} else if missing := s.policy().each(c.user, r.Spec.Namespace, add); len(missing) > 0 {
			r.Status.Incomplete, r.Status.EvaluationError = true, utilerrors.NewAggregate(missing).Error()
		}
		r.Spec = authorizationv1.SelfSubjectRulesReviewSpec{}
		return nil
	})
}
