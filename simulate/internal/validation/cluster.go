// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateDisruptionBudget(o *policyv1.PodDisruptionBudget) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if o.Spec.MinAvailable != nil && o.Spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(path, o.Spec, "minAvailable and maxUnavailable cannot be both set"))
	}
	errs = append(errs, countOrPercent(o.Spec.MinAvailable, path.Child("minAvailable"))...)
	errs = append(errs, atMostAll(o.Spec.MinAvailable, path.Child("minAvailable"))...)
	errs = append(errs, countOrPercent(o.Spec.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, atMostAll(o.Spec.MaxUnavailable, path.Child("maxUnavailable"))...)
	if o.Spec.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(o.Spec.Selector, selectorOptions, path.Child("selector"))...)
	}
	errs = append(errs, supportedIf(o.Spec.UnhealthyPodEvictionPolicy, path.Child("unhealthyPodEvictionPolicy"), policyv1.AlwaysAllow, policyv1.IfHealthyBudget)...)
	return errs
}

// shortestCertificate is for how many seconds one can be asked for.
const shortestCertificate = 600

// certificateUsages are what a certificate can be for, in the order of their names.
var certificateUsages = []certificatesv1.KeyUsage{
	certificatesv1.UsageAny, certificatesv1.UsageCertSign, certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning,
	certificatesv1.UsageContentCommitment, certificatesv1.UsageCRLSign, certificatesv1.UsageDataEncipherment, certificatesv1.UsageDecipherOnly,
	certificatesv1.UsageDigitalSignature, certificatesv1.UsageEmailProtection, certificatesv1.UsageEncipherOnly, certificatesv1.UsageIPsecEndSystem,
	certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageKeyAgreement, certificatesv1.UsageKeyEncipherment,
	certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC, certificatesv1.UsageOCSPSigning, certificatesv1.UsageSMIME,
	certificatesv1.UsageServerAuth, certificatesv1.UsageSigning, certificatesv1.UsageTimestamping,
}

func validateSigningRequest(o, old *certificatesv1.CertificateSigningRequest) (errs field.ErrorList) {
	if old != nil {
		return nil // all of its spec is kept as it was
	}
	path := field.NewPath("spec")
	block, _ := pem.Decode(o.Spec.Request)
	switch {
	case block == nil || block.Type != "CERTIFICATE REQUEST":
		errs = append(errs, field.Invalid(path.Child("request"), o.Spec.Request, "PEM block type must be CERTIFICATE REQUEST"))
	default:
		if _, err := x509.ParseCertificateRequest(block.Bytes); err != nil {
			errs = append(errs, field.Invalid(path.Child("request"), o.Spec.Request, err.Error()))
		}
	}
	if len(o.Spec.Usages) == 0 {
		errs = append(errs, field.Required(path.Child("usages"), ""))
	}
	seen := map[certificatesv1.KeyUsage]bool{}
	for i, usage := range o.Spec.Usages {
		at := path.Child("usages").Index(i)
		errs = append(errs, supported(usage, at, certificateUsages...)...)
		if seen[usage] {
			errs = append(errs, field.Duplicate(at, usage))
		}
		seen[usage] = true
	}
	if o.Spec.SignerName == "kubernetes.io/legacy-unknown" {
		errs = append(errs, field.Invalid(path.Child("signerName"), o.Spec.SignerName, "the legacy signerName is not allowed via this API version"))
	} else {
		errs = append(errs, validateSigner(o.Spec.SignerName, path.Child("signerName"))...)
	}
	if s := o.Spec.ExpirationSeconds; s != nil && *s < shortestCertificate {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *s, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return errs
}

// validateSigner wants a domain and a path.
func validateSigner(name string, path *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(rest, "/") {
		return field.ErrorList{field.Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	part := func(whole, label string, problems []string) {
		for _, problem := range problems {
			errs = append(errs, field.Invalid(path, whole, fmt.Sprintf("validating label %q: %s", label, problem)))
		}
	}
	labels := strings.Split(domain, ".")
	if len(labels) < 2 {
		errs = append(errs, field.Invalid(path, domain, "should be a domain with at least two segments separated by dots"))
	}
	for _, label := range labels {
		part(domain, label, utilvalidation.IsDNS1123Label(label))
	}
	for label := range strings.SplitSeq(rest, ".") {
		part(rest, label, utilvalidation.IsDNS1123Subdomain(label))
	}
	return errs
}

func validateTrustBundle(o *certificatesv1.ClusterTrustBundle) (errs field.ErrorList) {
	path := field.NewPath("spec")
	signer := o.Spec.SignerName
	prefix := strings.ReplaceAll(signer, "/", ":") + ":"
	switch {
	case signer == "" && strings.Contains(o.Name, ":"):
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), o.Name, "ClusterTrustBundle without signer name must not have \":\" in its name"))
	case signer != "" && !strings.HasPrefix(o.Name, prefix):
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), o.Name, fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, prefix)))
	}
	if signer != "" {
		errs = append(errs, validateSigner(signer, path.Child("signerName"))...)
	}
	found := false
	for rest := []byte(o.Spec.TrustBundle); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		found = true
	}
	if !found {
		errs = append(errs, field.Invalid(path.Child("trustBundle"), "<value omitted>", "at least one trust anchor must be provided"))
	}
	return errs
}
