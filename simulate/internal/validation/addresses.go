// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/flyball-dev/flyball/simulate/internal/crdrules"
)

func validateAddress(o *networkingv1.IPAddress) (errs field.ErrorList) {
	if at, err := netip.ParseAddr(o.Name); err != nil || at.String() != o.Name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), o.Name, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
	}
	parent := field.NewPath("spec", "parentRef")
	if o.Spec.ParentRef == nil {
		return append(errs, field.Required(parent, ""))
	}
	errs = append(errs, required(parent, "resource", o.Spec.ParentRef.Resource)...)
	return append(errs, required(parent, "name", o.Spec.ParentRef.Name)...)
}

// validateRanges wants one range of addresses, or one of each family.
func validateRanges(ranges []string, path *field.Path) (errs field.ErrorList) {
	seen := map[bool]bool{} // of the sixth version
	for i, text := range ranges {
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(path.Index(i), text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"))
			continue
		case seen[prefix.Addr().Is6()]:
			errs = append(errs, field.Invalid(path, ranges, "may specify no more than one value for each IP family"))
		}
		seen[prefix.Addr().Is6()] = true
	}
	return errs
}

func validateServiceRange(o *networkingv1.ServiceCIDR) field.ErrorList {
	path := field.NewPath("spec", "cidrs")
	if len(o.Spec.CIDRs) == 0 {
		return field.ErrorList{field.Required(path, "at least one CIDR required")}
	}
	return validateRanges(o.Spec.CIDRs, path)
}

func validateNode(o *corev1.Node) field.ErrorList {
	errs := validateTaints(o.Spec.Taints, field.NewPath("metadata", "taints")) // as a real server writes it
	return append(errs, validateRanges(o.Spec.PodCIDRs, field.NewPath("spec", "podCIDRs"))...)
}

func validateMigration(o *storagemigrationv1.StorageVersionMigration) field.ErrorList {
	if o.Spec.Resource.Resource != "" {
		return nil
	}
	return field.ErrorList{field.Required(field.NewPath("spec", "resource", "resource"), "resource is required to be set")}
}

// readable wants an expression that follows the grammar of CEL. What it names is not looked up.
func readable(expression string, path *field.Path) field.ErrorList {
	env, err := crdrules.CELEnvironment().Env(environment.NewExpressions)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	if _, issues := env.Parse(expression); issues.Err() != nil {
		return field.ErrorList{field.Invalid(path, expression, fmt.Sprintf("compilation failed: %v", issues.Err()))}
	}
	return nil
}

// APIService says what is wrong with a new APIService, which has no Go type here.
func APIService(name string, content map[string]any) (errs field.ErrorList) {
	spec, path := content["spec"], field.NewPath("spec")
	fields, _ := spec.(map[string]any)
	text := func(name string) string { value, _ := fields[name].(string); return value }
	if want := text("version") + "." + text("group"); name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", want)))
	}
	for _, bound := range []struct {
		name string
		most int64
	}{{"groupPriorityMinimum", 20000}, {"versionPriority", 1000}} {
		if n, _ := fields[bound.name].(int64); n <= 0 || n > bound.most {
			errs = append(errs, field.Invalid(path.Child(bound.name), n, fmt.Sprintf("must be positive and less than %d", bound.most)))
		}
	}
	service, _ := fields["service"].(map[string]any)
	insecure, _ := fields["insecureSkipTLSVerify"].(bool)
	bundle := text("caBundle")
	switch {
	case service == nil && insecure:
		errs = append(errs, field.Invalid(path.Child("insecureSkipTLSVerify"), insecure, "local APIServices may not have insecureSkipTLSVerify"))
	case service == nil && bundle != "":
		errs = append(errs, field.Invalid(path.Child("caBundle"), "", "local APIServices may not have a caBundle"))
	case insecure && bundle != "":
		errs = append(errs, field.Invalid(path.Child("insecureSkipTLSVerify"), insecure, "may not be true if caBundle is present"))
	}
	if service == nil {
		return errs
	}
	for _, name := range []string{"namespace", "name"} {
		value, _ := service[name].(string)
		errs = append(errs, required(path.Child("service"), name, value)...)
	}
	return errs
}
