// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
	webv1beta1 "github.com/flyball-dev/flyball/examples/website/api/v1beta1"
)

// webhookOptions make the server create its certificates itself, unless a directory has
// them, and write their CA bundle into the configurations named website and into the
// CustomResourceDefinition, if that has a webhook.
func webhookOptions(given webhook.Options) webhook.Options {
	if given.CertDir == "" {
		given.Managed = &webhook.Managed{
			Service:    "website-webhooks",
			Mutating:   []string{"website"},
			Validating: []string{"website"},
			CRDs:       []string{"websites.example.flyball.dev"},
		}
	}
	return given
}

// addWebhooks adds webhooks to mgr that default and validate Websites before they are
// stored, and convert them between their versions.
func addWebhooks(mgr *manager.Manager) {
	websites := informer.For[*webv1.Website](mgr.Informers())
	webhook.Mutate(mgr.Webhooks(), "", writeHost)
	webhook.Validate(mgr.Webhooks(), "", hostRules{websites.Lister()}.validate)
	webhook.Convert(mgr.Webhooks(), webhook.Spoke(webv1beta1.Conversion.ToHub, webv1beta1.Conversion.FromHub))
}

// writeHost normalizes the host as DNS compares names, so all other code can compare text.
func writeHost(_ context.Context, _ *webhook.Request, site *webv1.Website) error {
	site.Spec.Host = strings.ToLower(strings.TrimSuffix(site.Spec.Host, "."))
	return nil
}

// hostRules are rules that a schema cannot express: they depend on other Websites.
type hostRules struct {
	websites informer.Lister[*webv1.Website]
}

func (r hostRules) validate(_ context.Context, req *webhook.Request, old, site *webv1.Website) error {
	if site == nil || site.Spec.Host == "" || old != nil && old.Spec.Host == site.Spec.Host {
		return nil // existing objects stay valid, whatever the rules are today
	}
	path := field.NewPath("spec", "host")
	var errs field.ErrorList
	for _, complaint := range validation.IsDNS1123Subdomain(site.Spec.Host) {
		errs = append(errs, field.Invalid(path, site.Spec.Host, complaint))
	}
	// Two concurrent requests may both pass, because the store lags behind.
	for other := range r.websites.All() {
		if other.Spec.Host == site.Spec.Host && kube.KeyOf(other) != req.Key() {
			errs = append(errs, field.Invalid(path, site.Spec.Host, fmt.Sprintf("Website %s has this host", kube.KeyOf(other))))
		}
	}
	if !strings.Contains(site.Spec.Host, ".") {
		req.Warn("spec.host %q has no dot: only clients that complete names will find it", site.Spec.Host)
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(webv1.GroupVersion.WithKind("Website").GroupKind(), site.Name, errs)
}
