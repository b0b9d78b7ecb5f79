// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdrules

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// conversion validates the conversion between versions.
func (r *Rules) conversion(path *field.Path) (errs field.ErrorList) {
	c := r.CRD.Spec.Conversion
	if c == nil {
		return nil
	}
	none, webhook := apiextensions.NoneConverter, apiextensions.WebhookConverter
	errs = append(errs, oneOf(path.Child("strategy"), string(c.Strategy), string(none), string(webhook))...)
	client, versions := path.Child("webhookClientConfig"), path.Child("conversionReviewVersions")
	if c.Strategy != webhook {
		if c.WebhookClientConfig != nil {
			errs = append(errs, field.Forbidden(client, "should not be set when strategy is not set to Webhook"))
		}
		if len(c.ConversionReviewVersions) > 0 {
			errs = append(errs, field.Forbidden(versions, "should not be set when strategy is not set to Webhook"))
		}
		return errs
	}
	if c.WebhookClientConfig == nil {
		errs = append(errs, field.Required(client, "required when strategy is set to Webhook"))
	} else {
		errs = append(errs, r.conversionClient(c.WebhookClientConfig, client)...)
	}
	return append(errs, ReviewVersions(c.ConversionReviewVersions, versions, "v1", "v1beta1")...)
}

func (r *Rules) conversionClient(c *apiextensions.WebhookClientConfig, path *field.Path) (errs field.ErrorList) {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		errs = append(errs, field.Required(path, "exactly one of url or service is required"))
	case c.URL != nil:
		errs = append(errs, WebhookURL(*c.URL, path.Child("url"))...)
	default:
		// As on a real server: it confuses name and namespace.
		errs = append(errs, WebhookService(c.Service.Name, c.Service.Namespace, c.Service.Path, c.Service.Port, path.Child("service"))...)
	}
	if r.Old != nil && len(c.CABundle) > 0 && apiextensions.IsCRDConditionTrue(r.Old, apiextensions.Established) && !x509.NewCertPool().AppendCertsFromPEM(c.CABundle) {
		errs = append(errs, field.Invalid(path.Child("caBundle"), c.CABundle, "unable to load root certificates: unable to parse bytes as PEM block"))
	}
	return errs
}

// ReviewVersions validates the versions of reviews that a webhook accepts.
func ReviewVersions(versions []string, path *field.Path, known ...string) (errs field.ErrorList) {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	accepted := false
	for i, v := range versions {
		if slices.Contains(versions[:i], v) {
			errs = append(errs, field.Invalid(path.Index(i), v, "duplicate version"))
			continue
		}
		for _, problem := range utilvalidation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(path.Index(i), v, problem))
		}
		accepted = accepted || slices.Contains(known, v)
	}
	if !accepted {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of "+strings.Join(known, ", ")))
	}
	return errs
}

// WebhookURL validates the URL of a webhook.
func WebhookURL(text string, path *field.Path) (errs field.ErrorList) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(path, "url must be a valid URL: "+err.Error()+form)}
	}
	if u.Scheme != "https" {
		errs = append(errs, field.Invalid(path, u.Scheme, "'https' is the only allowed URL scheme"+form))
	}
	if u.Host == "" {
		errs = append(errs, field.Invalid(path, u.Host, "host must be specified"+form))
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(path, u.User.String(), "user information is not permitted in the URL"))
	}
	if u.Fragment != "" {
		errs = append(errs, field.Invalid(path, u.Fragment, "fragments are not permitted in the URL"))
	}
	if u.RawQuery != "" {
		errs = append(errs, field.Invalid(path, u.RawQuery, "query parameters are not permitted in the URL"))
	}
	return errs
}

// WebhookService validates a webhook's reference to a Service.
func WebhookService(namespace, name string, urlPath *string, port int32, path *field.Path) (errs field.ErrorList) {
	if name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	if problems := utilvalidation.IsValidPortNum(int(port)); problems != nil {
		errs = append(errs, field.Invalid(path.Child("port"), port, "port is not valid: "+strings.Join(problems, ", ")))
	}
	if urlPath == nil || *urlPath == "" || *urlPath == "/" {
		return errs
	}
	path = path.Child("path")
	if !strings.HasPrefix(*urlPath, "/") {
		errs = append(errs, field.Invalid(path, *urlPath, "must start with a '/'"))
	}
	for i, segment := range strings.Split(strings.TrimSuffix((*urlPath)[1:], "/"), "/") {
		if segment == "" {
			errs = append(errs, field.Invalid(path, *urlPath, fmt.Sprintf("segment[%d] may not be empty", i)))
			continue
		}
		for _, problem := range utilvalidation.IsDNS1123Subdomain(segment) {
			errs = append(errs, field.Invalid(path, *urlPath, fmt.Sprintf("segment[%d]: %s", i, problem)))
		}
	}
	return errs
}
