// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateScheduling holds what of a Pod says on which node it runs.
func validateScheduling(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	errs = metav1validation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))
	errs = append(errs, validateAffinity(s.Affinity, path.Child("affinity"))...)
	errs = append(errs, validateTolerations(s.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateSpread(s.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	gates := sets.New[string]()
	for i, g := range s.SchedulingGates {
		at := path.Child("schedulingGates").Index(i)
		errs = append(errs, invalids(at, g.Name, utilvalidation.IsQualifiedName(g.Name))...)
		if gates.Has(g.Name) {
			errs = append(errs, field.Duplicate(at, g.Name))
		}
		gates.Insert(g.Name)
	}
	for i, g := range s.ReadinessGates {
		errs = append(errs, invalids(path.Child("readinessGates").Index(i).Child("conditionType"), string(g.ConditionType), utilvalidation.IsQualifiedName(string(g.ConditionType)))...)
	}
	return errs
}

func validateAffinity(a *corev1.Affinity, path *field.Path) (errs field.ErrorList) {
	if a == nil {
		return nil
	}
	const hard, soft = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	if n := a.NodeAffinity; n != nil {
		if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			errs = append(errs, validateNodeSelector(n.RequiredDuringSchedulingIgnoredDuringExecution, path.Child("nodeAffinity", hard))...)
		}
		for i, p := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			at := path.Child("nodeAffinity", soft).Index(i)
			errs = append(errs, validateWeight(p.Weight, at)...)
			errs = append(errs, validateNodeTerm(&p.Preference, at.Child("preference"))...)
		}
	}
	if p := a.PodAffinity; p != nil {
		errs = append(errs, validatePodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity", hard))...)
		errs = append(errs, validateWeightedTerms(p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity", soft))...)
	}
	if p := a.PodAntiAffinity; p != nil {
		errs = append(errs, validatePodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity", hard))...)
		errs = append(errs, validateWeightedTerms(p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity", soft))...)
	}
	return errs
}

func validateWeight(weight int32, path *field.Path) field.ErrorList {
	if weight >= 1 && weight <= 100 {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("weight"), weight, "must be in the range 1-100")}
}

func validateNodeSelector(s *corev1.NodeSelector, path *field.Path) (errs field.ErrorList) {
	if len(s.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(path.Child("nodeSelectorTerms"), "must have at least one node selector term")}
	}
	for i := range s.NodeSelectorTerms {
		errs = append(errs, validateNodeTerm(&s.NodeSelectorTerms[i], path.Child("nodeSelectorTerms").Index(i))...)
	}
	return errs
}

func validateNodeTerm(t *corev1.NodeSelectorTerm, path *field.Path) (errs field.ErrorList) {
	for i, r := range t.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(at.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
			}
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				errs = append(errs, field.Forbidden(at.Child("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
			}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			if len(r.Values) != 1 {
				errs = append(errs, field.Required(at.Child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'"))
			}
		default:
			errs = append(errs, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
		}
		errs = append(errs, metav1validation.ValidateLabelName(r.Key, at.Child("key"))...)
	}
	for i, r := range t.MatchFields {
		at := path.Child("matchFields").Index(i)
		if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
			errs = append(errs, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
		} else if len(r.Values) != 1 {
			errs = append(errs, field.Required(at.Child("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
		if r.Key != "metadata.name" {
			errs = append(errs, field.Invalid(at.Child("key"), r.Key, "not a valid field selector key"))
		}
	}
	return errs
}

func validatePodTerms(terms []corev1.PodAffinityTerm, path *field.Path) (errs field.ErrorList) {
	for i := range terms {
		errs = append(errs, validatePodTerm(&terms[i], path.Index(i))...)
	}
	return errs
}

func validateWeightedTerms(terms []corev1.WeightedPodAffinityTerm, path *field.Path) (errs field.ErrorList) {
	for i := range terms {
		errs = append(errs, validateWeight(terms[i].Weight, path.Index(i))...)
		errs = append(errs, validatePodTerm(&terms[i].PodAffinityTerm, path.Index(i).Child("podAffinityTerm"))...)
	}
	return errs
}

func validatePodTerm(t *corev1.PodAffinityTerm, path *field.Path) (errs field.ErrorList) {
	if t.LabelSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(t.LabelSelector, selectorOptions, path.Child("labelSelector"))...)
	}
	if t.NamespaceSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(t.NamespaceSelector, selectorOptions, path.Child("namespaceSelector"))...)
	}
	for i, name := range t.Namespaces {
		errs = append(errs, invalids(path.Child("namespace").Index(i), name, utilvalidation.IsDNS1123Label(name))...)
	}
	if t.TopologyKey == "" {
		errs = append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
	}
	return append(errs, metav1validation.ValidateLabelName(t.TopologyKey, path.Child("topologyKey"))...)
}

func validateTolerations(tolerations []corev1.Toleration, path *field.Path) (errs field.ErrorList) {
	for i, t := range tolerations {
		at := path.Index(i)
		if t.Key != "" {
			errs = append(errs, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
		} else if t.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(at.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			if problems := utilvalidation.IsValidLabelValue(t.Value); len(problems) > 0 {
				errs = append(errs, field.Invalid(at.Child("operator"), t.Value, strings.Join(problems, ";")))
			}
		case corev1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(at.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'"))
			}
		case corev1.TolerationOpLt, corev1.TolerationOpGt:
			if _, err := strconv.ParseInt(t.Value, 10, 64); err != nil {
				errs = append(errs, field.Invalid(at.Child("value"), t.Value, err.Error()))
			}
		default:
			errs = append(errs, supported(t.Operator, at.Child("operator"), corev1.TolerationOpEqual, corev1.TolerationOpExists)...)
		}
		if t.Effect != "" {
			errs = append(errs, supported(t.Effect, at.Child("effect"), corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
		}
	}
	return errs
}

func validateSpread(constraints []corev1.TopologySpreadConstraint, path *field.Path) (errs field.ErrorList) {
	for i, c := range constraints {
		at := path.Index(i)
		if c.MaxSkew <= 0 {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
		}
		if c.TopologyKey == "" {
			errs = append(errs, field.Required(at.Child("topologyKey"), "can not be empty"))
		} else {
			errs = append(errs, metav1validation.ValidateLabelName(c.TopologyKey, at.Child("topologyKey"))...)
		}
		errs = append(errs, supported(c.WhenUnsatisfiable, at.Child("whenUnsatisfiable"), corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		same := func(other corev1.TopologySpreadConstraint) bool {
			return other.TopologyKey == c.TopologyKey && other.WhenUnsatisfiable == c.WhenUnsatisfiable
		}
		if slices.ContainsFunc(constraints[i+1:], same) {
			errs = append(errs, field.Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), fmt.Sprintf("{%v, %v}", c.TopologyKey, c.WhenUnsatisfiable)))
		}
		if c.MinDomains != nil {
			if *c.MinDomains <= 0 {
				errs = append(errs, field.Invalid(at.Child("minDomains"), *c.MinDomains, "must be greater than zero"))
			}
			if c.WhenUnsatisfiable != corev1.DoNotSchedule {
				errs = append(errs, field.Invalid(at.Child("minDomains"), *c.MinDomains, fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule, c.WhenUnsatisfiable)))
			}
		}
		errs = append(errs, supportedIf(c.NodeAffinityPolicy, at.Child("nodeAffinityPolicy"), corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)...)
		errs = append(errs, supportedIf(c.NodeTaintsPolicy, at.Child("nodeTaintsPolicy"), corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)...)
		if c.LabelSelector != nil {
			errs = append(errs, metav1validation.ValidateLabelSelector(c.LabelSelector, selectorOptions, at.Child("labelSelector"))...)
		}
	}
	return errs
}
