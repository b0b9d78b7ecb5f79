// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/flyball-dev/flyball/simulate/internal/crdrules"
)

// mostConditions is how many conditions a webhook may have.
const mostConditions = 64

func validateMutatingHooks(o *admissionregistrationv1.MutatingWebhookConfiguration) field.ErrorList {
	return validateHooks(o.Webhooks)
}

func validateValidatingHooks(o *admissionregistrationv1.ValidatingWebhookConfiguration) field.ErrorList {
	var hooks []admissionregistrationv1.MutatingWebhook
	for i := range o.Webhooks {
		hooks = append(hooks, hookOf(&o.Webhooks[i]))
	}
	return validateHooks(hooks)
}

// validateHooks says what is wrong with the webhooks of a configuration.
func validateHooks(hooks []admissionregistrationv1.MutatingWebhook) (errs field.ErrorList) {
	named := map[string]bool{}
	for i := range hooks {
		h, path := &hooks[i], field.NewPath("webhooks").Index(i)
		errs = append(errs, validateHook(h, path)...)
		versions := path.Child("admissionReviewVersions")
		if len(h.AdmissionReviewVersions) == 0 {
			errs = append(errs, field.Required(versions, "must specify one of v1, v1beta1"))
		} else {
			errs = append(errs, crdrules.ReviewVersions(h.AdmissionReviewVersions, versions, "v1", "v1beta1")...)
		}
		if named[h.Name] && h.Name != "" {
			errs = append(errs, field.Duplicate(path.Child("name"), h.Name))
		}
		named[h.Name] = true
	}
	return errs
}

func validateHook(h *admissionregistrationv1.MutatingWebhook, path *field.Path) field.ErrorList {
	errs := utilvalidation.IsFullyQualifiedName(path.Child("name"), h.Name)
	for i := range h.Rules {
		errs = append(errs, validateHookRule(&h.Rules[i], path.Child("rules").Index(i))...)
	}
	choose := func(name string, given *string, accepted ...string) {
		if given != nil && !slices.Contains(accepted, *given) {
			errs = append(errs, field.NotSupported(path.Child(name), *given, accepted))
		}
	}
	choose("failurePolicy", (*string)(h.FailurePolicy), "Fail", "Ignore")
	choose("matchPolicy", (*string)(h.MatchPolicy), "Equivalent", "Exact")
	if h.SideEffects == nil {
		errs = append(errs, field.Required(path.Child("sideEffects"), "must specify one of None, NoneOnDryRun"))
	}
	choose("sideEffects", (*string)(h.SideEffects), "None", "NoneOnDryRun")
	if t := h.TimeoutSeconds; t != nil && (*t > 30 || *t < 1) {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *t, "the timeout value must be between 1 and 30 seconds"))
	}
	if h.NamespaceSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(h.NamespaceSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("namespaceSelector"))...)
	}
	if h.ObjectSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(h.ObjectSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("objectSelector"))...)
	}
	choose("reinvocationPolicy", (*string)(h.ReinvocationPolicy), "IfNeeded", "Never")
	switch c, client := h.ClientConfig, path.Child("clientConfig"); {
	case (c.URL == nil) == (c.Service == nil):
		errs = append(errs, field.Required(client, "exactly one of url or service is required"))
	case c.URL != nil:
		errs = append(errs, crdrules.WebhookURL(*c.URL, client.Child("url"))...)
	default:
		port := int32(443)
		if c.Service.Port != nil {
			port = *c.Service.Port
		}
		// As a real server: name and namespace are told apart the wrong way.
		errs = append(errs, crdrules.WebhookService(c.Service.Name, c.Service.Namespace, c.Service.Path, port, client.Child("service"))...)
	}
	return append(errs, validateConditions(h.MatchConditions, path.Child("matchConditions"))...)
}

func validateHookRule(r *admissionregistrationv1.RuleWithOperations, path *field.Path) (errs field.ErrorList) {
	alone := func(list []string, path *field.Path, given any, what string) {
		if len(list) == 0 {
			errs = append(errs, field.Required(path, ""))
		}
		if len(list) > 1 && slices.Contains(list, "*") {
			errs = append(errs, field.Invalid(path, given, "if '*' is present, must not specify other "+what))
		}
	}
	var operations []string
	for _, o := range r.Operations {
		operations = append(operations, string(o))
	}
	alone(operations, path.Child("operations"), r.Operations, "operations")
	accepted := []string{"*", "CONNECT", "CREATE", "DELETE", "UPDATE"}
	for i, o := range operations {
		if !slices.Contains(accepted, o) {
			errs = append(errs, field.NotSupported(path.Child("operations").Index(i), o, accepted))
		}
	}
	alone(r.APIGroups, path.Child("apiGroups"), r.APIGroups, "API groups")
	alone(r.APIVersions, path.Child("apiVersions"), r.APIVersions, "API versions")
	for i, version := range r.APIVersions {
		if version == "" {
			errs = append(errs, field.Required(path.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, validateHookResources(r.Resources, path.Child("resources"))...)
	scopes := []string{"*", "Cluster", "Namespaced"}
	if r.Scope != nil && !slices.Contains(scopes, string(*r.Scope)) {
		errs = append(errs, field.NotSupported(path.Child("scope"), string(*r.Scope), scopes))
	}
	return errs
}

func validateHookResources(resources []string, path *field.Path) (errs field.ErrorList) {
	if len(resources) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	whole, everywhere, plain := map[string]bool{}, map[string]bool{}, false
	for i, each := range resources {
		if each == "" {
			errs = append(errs, field.Required(path.Index(i), ""))
			continue
		}
		resource, subresource, has := strings.Cut(each, "/")
		if !has {
			plain = each != "*"
			continue
		}
		if whole[resource] {
			errs = append(errs, field.Invalid(path.Index(i), each, fmt.Sprintf("if '%s/*' is present, must not specify %s", resource, each)))
		}
		if everywhere[subresource] {
			errs = append(errs, field.Invalid(path.Index(i), each, fmt.Sprintf("if '*/%s' is present, must not specify %s", subresource, each)))
		}
		whole[resource] = whole[resource] || subresource == "*"
		everywhere[subresource] = everywhere[subresource] || resource == "*"
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(path, resources, "if '*/*' is present, must not specify other resources"))
	}
	if slices.Contains(resources, "*") && plain {
		errs = append(errs, field.Invalid(path, resources, "if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}

// conditionCompiler compiles the conditions of webhooks, made once.
var conditionCompiler = sync.OnceValue(func() admissioncel.Compiler { return admissioncel.NewCompiler(crdrules.CELEnvironment()) })

func validateConditions(conditions []admissionregistrationv1.MatchCondition, path *field.Path) (errs field.ErrorList) {
	if len(conditions) > mostConditions {
		errs = append(errs, field.TooMany(path, len(conditions), mostConditions))
	}
	named := map[string]bool{}
	for i, c := range conditions {
		path := path.Index(i)
		if text := strings.TrimSpace(c.Expression); text == "" {
			errs = append(errs, field.Required(path.Child("expression"), ""))
		} else {
			errs = append(errs, validateExpression(text, path.Child("expression"))...)
		}
		if c.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
			continue
		}
		errs = append(errs, invalids(path.Child("name"), c.Name, utilvalidation.IsQualifiedName(c.Name))...)
		if named[c.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
		}
		named[c.Name] = true
	}
	return errs
}

func validateExpression(text string, path *field.Path) field.ErrorList {
	result := conditionCompiler().CompileCELExpression(&matchconditions.MatchCondition{Expression: text}, admissioncel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
	if result.Error == nil {
		return nil
	}
	problem := (*apiservercel.Error)(nil)
	if errors.As(result.Error, &problem) {
		switch problem.Type {
		case apiservercel.ErrorTypeRequired:
			return field.ErrorList{field.Required(path, problem.Detail)}
		case apiservercel.ErrorTypeInvalid:
			return field.ErrorList{field.Invalid(path, text, problem.Detail)}
		}
	}
	return field.ErrorList{field.InternalError(path, result.Error)}
}

// hookOf is a validating webhook in the form that both have.
func hookOf(w *admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
		NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
		TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
	}
}
