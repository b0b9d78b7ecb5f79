// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// lowestPrecedence is the number of the schema that is asked last.
const lowestPrecedence = 10000

// exemptLevel is the one level that nothing limits.
const exemptLevel = "exempt"

func validateFlowSchema(o *flowcontrolv1.FlowSchema) (errs field.ErrorList) {
	s, path := &o.Spec, field.NewPath("spec")
	switch at := path.Child("matchingPrecedence"); {
	case s.MatchingPrecedence <= 0:
		errs = append(errs, field.Invalid(at, s.MatchingPrecedence, "must be a positive value"))
	case s.MatchingPrecedence > lowestPrecedence:
		errs = append(errs, field.Invalid(at, s.MatchingPrecedence, "must not be greater than 10000"))
	}
	if d := s.DistinguisherMethod; d != nil {
		errs = append(errs, supported(d.Type, path.Child("distinguisherMethod", "type"), flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType)...)
	}
	if s.PriorityLevelConfiguration.Name == "" {
		errs = append(errs, field.Required(path.Child("priorityLevelConfiguration", "name"), "must reference a priority level"))
	}
	for i, rule := range s.Rules {
		errs = append(errs, validateFlowRule(&rule, path.Child("rules").Index(i))...)
	}
	return errs
}

func validateFlowRule(rule *flowcontrolv1.PolicyRulesWithSubjects, path *field.Path) (errs field.ErrorList) {
	if len(rule.Subjects) == 0 {
		errs = append(errs, field.Required(path.Child("subjects"), "subjects must contain at least one value"))
	}
	for i, s := range rule.Subjects {
		errs = append(errs, supported(s.Kind, path.Child("subjects").Index(i).Child("kind"), flowcontrolv1.SubjectKindGroup, flowcontrolv1.SubjectKindServiceAccount, flowcontrolv1.SubjectKindUser)...)
	}
	if len(rule.ResourceRules)+len(rule.NonResourceRules) == 0 {
		errs = append(errs, field.Required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
	}
	for i, r := range rule.NonResourceRules {
		at := path.Child("nonResourceRules").Index(i)
		if len(r.Verbs) == 0 {
			errs = append(errs, field.Required(at.Child("verbs"), "verbs must contain at least one value"))
		}
		for j, url := range r.NonResourceURLs {
			if url != "*" && !strings.HasPrefix(url, "/") {
				errs = append(errs, field.Invalid(at.Child("nonResourceURLs").Index(j), url, "must start with slash"))
			}
		}
	}
	return errs
}

func validateLevel(o *flowcontrolv1.PriorityLevelConfiguration) (errs field.ErrorList) {
	name, s, path := o.Name, &o.Spec, field.NewPath("spec")
	if (name == exemptLevel) != (s.Type == flowcontrolv1.PriorityLevelEnablementExempt) && (name == exemptLevel || s.Type == flowcontrolv1.PriorityLevelEnablementExempt) {
		errs = append(errs, field.Invalid(path.Child("type"), s.Type, "must be 'Exempt' if and only if `name` is 'exempt'"))
	}
	switch s.Type {
	case flowcontrolv1.PriorityLevelEnablementLimited:
		if s.Limited == nil {
			return append(errs, field.Required(path.Child("limited"), ""))
		}
		return append(errs, validateLimited(s.Limited, path.Child("limited"))...)
	case flowcontrolv1.PriorityLevelEnablementExempt:
	default:
		errs = append(errs, field.NotSupported(path.Child("type"), s.Type, []flowcontrolv1.PriorityLevelEnablement{flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited}))
	}
	if s.Limited != nil {
		errs = append(errs, field.Forbidden(path.Child("limited"), ""))
	}
	return errs
}

func validateLimited(l *flowcontrolv1.LimitedPriorityLevelConfiguration, path *field.Path) (errs field.ErrorList) {
	if n := l.NominalConcurrencyShares; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("nominalConcurrencyShares"), *n, "must be a non-negative integer"))
	}
	if n := l.LendablePercent; n != nil && (*n < 0 || *n > 100) {
		errs = append(errs, field.Invalid(path.Child("lendablePercent"), *n, "must be between 0 and 100, inclusive"))
	}
	if n := l.BorrowingLimitPercent; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("borrowingLimitPercent"), *n, "if specified, must be a non-negative integer"))
	}
	at, q := path.Child("limitResponse"), l.LimitResponse.Queuing
	queues := l.LimitResponse.Type == flowcontrolv1.LimitResponseTypeQueue
	errs = append(errs, supported(l.LimitResponse.Type, at.Child("type"), flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)...)
	at = at.Child("queuing")
	switch {
	case q == nil && queues:
		return append(errs, field.Required(at, ""))
	case q == nil:
		return errs
	case !queues:
		return append(errs, field.Forbidden(at, ""))
	}
	for _, each := range []struct {
		name  string
		value int32
	}{{"queues", q.Queues}, {"handSize", q.HandSize}, {"queueLengthLimit", q.QueueLengthLimit}} {
		if each.value <= 0 {
			errs = append(errs, field.Invalid(at.Child(each.name), each.value, "must be positive"))
		}
	}
	if q.HandSize > q.Queues {
		errs = append(errs, field.Invalid(at.Child("handSize"), q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues)))
	}
	return errs
}
