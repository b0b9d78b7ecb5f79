// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"math"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What a Pod may say about names.
const (
	nameservers = 3
	searchPaths = 32
)

// validateDNS holds how the Pod finds names.
func validateDNS(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	errs = supported(s.DNSPolicy, path.Child("dnsPolicy"), corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	at := path.Child("dnsConfig")
	if s.DNSPolicy == corev1.DNSNone {
		switch {
		case s.DNSConfig == nil:
			return append(errs, field.Required(at, "must provide `dnsConfig` when `dnsPolicy` is None"))
		case len(s.DNSConfig.Nameservers) == 0:
			return append(errs, field.Required(at.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None"))
		}
	}
	for i, a := range s.HostAliases {
		host := path.Child("hostAliases").Index(i)
		errs = append(errs, validateIP(a.IP, host.Child("ip"))...)
		for j, name := range a.Hostnames {
			errs = append(errs, invalids(host.Child("hostnames").Index(j), name, utilvalidation.IsDNS1123Subdomain(name))...)
		}
	}
	if s.DNSConfig == nil {
		return errs
	}
	if len(s.DNSConfig.Nameservers) > nameservers {
		errs = append(errs, field.Invalid(at.Child("nameservers"), s.DNSConfig.Nameservers, "must not have more than 3 nameservers"))
	}
	if len(s.DNSConfig.Searches) > searchPaths {
		errs = append(errs, field.Invalid(at.Child("searches"), s.DNSConfig.Searches, "must not have more than 32 search paths"))
	}
	for i, ip := range s.DNSConfig.Nameservers {
		errs = append(errs, validateIP(ip, at.Child("nameservers").Index(i))...)
	}
	for i, search := range s.DNSConfig.Searches {
		if search = strings.TrimSuffix(search, "."); search != "" {
			errs = append(errs, invalids(at.Child("searches").Index(i), search, utilvalidation.IsDNS1123SubdomainWithUnderscore(search))...)
		}
	}
	for i, option := range s.DNSConfig.Options {
		if option.Name == "" {
			errs = append(errs, field.Required(at.Child("options").Index(i), "must not be empty"))
		}
	}
	return errs
}

// validateIP takes what older servers took too.
func validateIP(ip string, path *field.Path) field.ErrorList {
	return utilvalidation.IsValidIPForLegacyField(path, ip, false, nil)
}

// userID is a number of a user or a group.
func userID(id *int64, path *field.Path) field.ErrorList {
	if id != nil && (*id < 0 || *id > math.MaxInt32) {
		return field.ErrorList{field.Invalid(path, *id, utilvalidation.InclusiveRangeError(0, math.MaxInt32))}
	}
	return nil
}

var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

const longestSysctl = 253

func validatePodSecurityContext(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	c, at := s.SecurityContext, path.Child("securityContext")
	if c == nil {
		return nil
	}
	errs = append(errs, userID(c.FSGroup, at.Child("fsGroup"))...)
	errs = append(errs, userID(c.RunAsUser, at.Child("runAsUser"))...)
	errs = append(errs, userID(c.RunAsGroup, at.Child("runAsGroup"))...)
	for i := range c.SupplementalGroups {
		errs = append(errs, userID(&c.SupplementalGroups[i], at.Child("supplementalGroups").Index(i))...)
	}
	seen := map[string]bool{}
	for i, each := range c.Sysctls {
		name := at.Child("sysctls").Index(i).Child("name")
		switch {
		case each.Name == "":
			errs = append(errs, field.Required(name, ""))
		case len(each.Name) > longestSysctl, !sysctlName.MatchString(each.Name):
			errs = append(errs, field.Invalid(name, each.Name, "must have at most 253 characters and match regex "+sysctlName.String()))
		case seen[each.Name]:
			errs = append(errs, field.Duplicate(name, each.Name))
		}
		seen[each.Name] = true
	}
	errs = append(errs, supportedIf(c.FSGroupChangePolicy, at.Child("fsGroupChangePolicy"), corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)...)
	errs = append(errs, validateSeccomp(c.SeccompProfile, at.Child("seccompProfile"))...)
	if w := c.WindowsOptions; w != nil && w.HostProcess != nil && *w.HostProcess && !s.HostNetwork {
		errs = append(errs, field.Invalid(path.Child("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers"))
	}
	return errs
}

func validateSeccomp(p *corev1.SeccompProfile, path *field.Path) (errs field.ErrorList) {
	if p == nil {
		return nil
	}
	errs = supported(p.Type, path.Child("type"), corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	switch local := path.Child("localhostProfile"); {
	case p.Type == corev1.SeccompProfileTypeLocalhost && (p.LocalhostProfile == nil || *p.LocalhostProfile == ""):
		errs = append(errs, field.Required(local, "must be set when seccomp type is Localhost"))
	case p.Type == corev1.SeccompProfileTypeLocalhost:
		errs = append(errs, insidePath(*p.LocalhostProfile, local)...)
	case p.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(local, *p.LocalhostProfile, "can only be set when seccomp type is Localhost"))
	}
	return errs
}

// validateContainerSecurity holds what a container may do. users: it has those of
// the node.
func validateContainerSecurity(c *corev1.SecurityContext, users bool, path *field.Path) (errs field.ErrorList) {
	if c == nil {
		return nil
	}
	errs = append(errs, userID(c.RunAsUser, path.Child("runAsUser"))...)
	errs = append(errs, userID(c.RunAsGroup, path.Child("runAsGroup"))...)
	if c.ProcMount != nil {
		wrong := supported(*c.ProcMount, path.Child("procMount"), corev1.DefaultProcMount, corev1.UnmaskedProcMount)
		if users && *c.ProcMount == corev1.UnmaskedProcMount {
			wrong = append(wrong, field.Invalid(path.Child("procMount"), *c.ProcMount, "`hostUsers` must be false to use `Unmasked`"))
		}
		errs = append(errs, wrong...)
	}
	errs = append(errs, validateSeccomp(c.SeccompProfile, path.Child("seccompProfile"))...)
	if c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation && c.Privileged != nil && *c.Privileged {
		errs = append(errs, field.Invalid(path, c, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
	}
	return errs
}
