// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/flyball-dev/flyball/simulate/internal/crdrules"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

var (
	mutatingConfigurations   = admissionregistrationv1.Resource("mutatingwebhookconfigurations")
	validatingConfigurations = admissionregistrationv1.Resource("validatingwebhookconfigurations")
)

// hook is one webhook of a stored configuration.
type hook struct {
	admissionregistrationv1.MutatingWebhook // which has all that a validating one has
	mutating                                bool
	namespaces, objects                     labels.Selector
	// conditions is nil when there are none. It is compiled when it is first
	// asked for.
	conditions func() matchconditions.Matcher
}

// hooks are the webhooks of the configurations that are stored, read when they
// change.
type hooks struct {
	mu struct {
		sync.Mutex
		of map[*object.Object][]*hook
	}
}

// of are the webhooks of a kind of configuration, in the order of their names
// and places. It keeps what it has read as long as that is stored.
func (h *hooks) of(configurations []*object.Object, mutating bool) (all []*hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := map[*object.Object][]*hook{}
	for configuration, read := range h.mu.of {
		if len(read) > 0 && read[0].mutating != mutating {
			kept[configuration] = read
		}
	}
	for _, configuration := range configurations {
		read, known := h.mu.of[configuration]
		if !known {
			read = readHooks(configuration, mutating)
		}
		kept[configuration] = read
		all = append(all, read...)
	}
	h.mu.of = kept
	return all
}

// readHooks reads the webhooks of one configuration.
func readHooks(configuration *object.Object, mutating bool) (all []*hook) {
	// The two kinds of configuration differ in one field, which stays empty.
	typed, err := object.TypedOf[admissionregistrationv1.MutatingWebhookConfiguration](configuration)
	if err != nil {
		return nil
	}
	for _, webhook := range typed.Webhooks {
		h := &hook{MutatingWebhook: webhook, mutating: mutating}
		if h.namespaces, err = metav1.LabelSelectorAsSelector(webhook.NamespaceSelector); err != nil {
			continue
		}
		if h.objects, err = metav1.LabelSelectorAsSelector(webhook.ObjectSelector); err != nil {
			continue
		}
		if len(webhook.MatchConditions) > 0 {
			h.conditions = sync.OnceValue(h.compile)
		}
		all = append(all, h)
	}
	return all
}

// compile compiles the conditions under which the webhook is called.
func (h *hook) compile() matchconditions.Matcher {
	var expressions []cel.ExpressionAccessor
	for _, c := range h.MatchConditions {
		expressions = append(expressions, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	evaluator := cel.NewConditionCompiler(crdrules.CELEnvironment()).CompileCondition(expressions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	kind := "validating"
	if h.mutating {
		kind = "admit"
	}
	return matchconditions.NewMatcher(evaluator, h.FailurePolicy, "webhook", kind, h.Name)
}

// tolerant reports whether a webhook that cannot be asked lets a write pass.
func (h *hook) tolerant() bool {
	return h.FailurePolicy != nil && *h.FailurePolicy == admissionregistrationv1.Ignore
}

// again reports whether the webhook is asked again when a later one has changed
// the object.
func (h *hook) again() bool {
	return h.ReinvocationPolicy != nil && *h.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
}

// rehearses reports whether the webhook can be asked about what is not stored.
func (h *hook) rehearses() bool {
	return h.SideEffects != nil && (*h.SideEffects == admissionregistrationv1.SideEffectClassNone || *h.SideEffects == admissionregistrationv1.SideEffectClassNoneOnDryRun)
}

// hookTimeout is how long a webhook may take when it does not say.
const hookTimeout = 10 * time.Second

func (h *hook) timeout() time.Duration {
	if h.TimeoutSeconds == nil {
		return hookTimeout
	}
	return time.Duration(*h.TimeoutSeconds) * time.Second
}

// version is the one of the reviews that the webhook takes; empty: none that
// the server knows.
func (h *hook) version() string {
	for _, v := range h.AdmissionReviewVersions {
		if v == "v1" || v == "v1beta1" {
			return v
		}
	}
	return ""
}

// invocation is as what a webhook is asked about a write: the kind that its
// rules name, which may be another version of the one that is written.
func (h *hook) invocation(call *Call) *kinds.Kind {
	if h.ruled(call, call.Kind) {
		return call.Kind
	}
	if h.MatchPolicy == nil || *h.MatchPolicy != admissionregistrationv1.Equivalent || call.Kind.Family == nil {
		return nil
	}
	for i := range h.Rules {
		for _, other := range call.Kind.Family.Versions {
			if other != call.Kind && !other.Unserved && applies(&h.Rules[i], call, other) {
				return other
			}
		}
	}
	return nil
}

func (h *hook) ruled(call *Call, as *kinds.Kind) bool {
	return slices.ContainsFunc(h.Rules, func(r admissionregistrationv1.RuleWithOperations) bool { return applies(&r, call, as) })
}

// applies reports whether a rule is about a write, taken as one of a kind.
func applies(r *admissionregistrationv1.RuleWithOperations, call *Call, as *kinds.Kind) bool {
	if r.Scope != nil && *r.Scope != admissionregistrationv1.AllScopes {
		namespaced := call.Kind.Namespaced
		if (*r.Scope == admissionregistrationv1.NamespacedScope) != namespaced {
			return false
		}
	}
	operations := make([]string, 0, len(r.Operations))
	for _, o := range r.Operations {
		operations = append(operations, string(o))
	}
	if !among(operations, call.Operation) || !among(r.APIGroups, as.Group) || !among(r.APIVersions, as.Version) {
		return false
	}
	for _, each := range r.Resources {
		resource, subresource, _ := strings.Cut(each, "/")
		if (resource == "*" || resource == as.Resource) && (subresource == "*" || subresource == call.Subresource) {
			return true
		}
	}
	return false
}

// among reports whether a list has one, or all.
func among(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}

// concerns reports whether a webhook's selectors choose a write.
func (a *Admission) concerns(h *hook, call *Call) bool {
	chosen := func(obj *object.Object) bool { return obj != nil && h.objects.Matches(object.LabelSet(obj)) }
	if !h.objects.Empty() && !chosen(call.Object) && !chosen(call.Old) {
		return false
	}
	return h.namespaces.Empty() || !call.Kind.Namespaced && !isNamespace(call.Kind) || h.namespaces.Matches(a.namespaceLabels(call))
}

func isNamespace(k *kinds.Kind) bool {
	return k.GroupResource() == schema.GroupResource{Resource: "namespaces"}
}

// namespaceLabels are those of the namespace that a write is in, or of.
func (a *Admission) namespaceLabels(call *Call) labels.Set {
	if isNamespace(call.Kind) {
		return object.LabelSet(cmp.Or(call.Object, call.Old))
	}
	if namespace := a.Objects.Get(schema.GroupResource{Resource: "namespaces"}, types.NamespacedName{Name: call.Namespace}); namespace != nil {
		return object.LabelSet(namespace)
	}
	return labels.Set{}
}
