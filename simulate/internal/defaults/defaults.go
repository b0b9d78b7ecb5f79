// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 a server takes what old clients send

// Package defaults sets the defaults of built-in kinds on their Go types, and converts
// HorizontalPodAutoscalers between their versions v1 and v2. Its functions are pure, except for
// the start times that a few kinds have.
package defaults

import (
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Set sets the defaults of an object.
func Set(obj runtime.Object) {
	dropEmpty(obj)
	setters().Default(obj)
}

// setters has the function that sets the defaults of each Go type.
var setters = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	add(s, defaultPod)
	add(s, func(o *corev1.PodTemplate) { defaultPodSpec(&o.Template.Spec) })
	add(s, defaultReplicationController)
	add(s, defaultService)
	add(s, defaultSecret)
	add(s, defaultNamespace)
	add(s, defaultClaim)
	add(s, defaultVolume)
	add(s, defaultLimitRange)
	add(s, defaultNode)
	add(s, defaultEndpoints)
	add(s, defaultEndpointSlice)
	add(s, Autoscaler)
	add(s, func(o *autoscalingv1.HorizontalPodAutoscaler) { OrElse(&o.Spec.MinReplicas, 1) })
	add(s, func(o *schedulingv1.PriorityClass) { OrElse(&o.PreemptionPolicy, corev1.PreemptLowerPriority) })
	add(s, defaultValidatingHooks)
	add(s, defaultMutatingHooks)
	add(s, apiextensionsv1.SetObjectDefaults_CustomResourceDefinition)
	add(s, defaultDeployment)
	add(s, defaultReplicaSet)
	add(s, defaultStatefulSet)
	add(s, defaultDaemonSet)
	add(s, defaultJob)
	add(s, defaultCronJob)
	add(s, defaultNetworkPolicy)
	add(s, defaultIngressClass)
	add(s, func(o *rbacv1.RoleBinding) { defaultBinding(&o.RoleRef, o.Subjects) })
	add(s, func(o *rbacv1.ClusterRoleBinding) { defaultBinding(&o.RoleRef, o.Subjects) })
	add(s, defaultStorageClass)
	add(s, defaultDriver)
	add(s, func(o *flowcontrolv1.FlowSchema) { ZeroElse(&o.Spec.MatchingPrecedence, 1000) })
	add(s, defaultPriorityLevel)
	add(s, func(o *admissionv1.ValidatingAdmissionPolicy) {
		defaultPolicy(&o.Spec.FailurePolicy, o.Spec.MatchConstraints)
	})
	add(s, func(o *admissionv1.MutatingAdmissionPolicy) {
		defaultPolicy(&o.Spec.FailurePolicy, o.Spec.MatchConstraints)
	})
	add(s, func(o *admissionv1.ValidatingAdmissionPolicyBinding) { defaultMatch(o.Spec.MatchResources) })
	add(s, func(o *admissionv1.MutatingAdmissionPolicyBinding) { defaultMatch(o.Spec.MatchResources) })
	add(s, func(o *resourcev1.ResourceClaim) { defaultDevices(&o.Spec.Devices) })
	add(s, func(o *resourcev1.ResourceClaimTemplate) { defaultDevices(&o.Spec.Spec.Devices) })
	add(s, defaultResourceSlice)
	add(s, func(o *resourcev1.DeviceTaintRule) { OrElse(&o.Spec.Taint.TimeAdded, object.Now()) })
	return s
})

func add[T any, P interface {
	*T
	runtime.Object
}](s *runtime.Scheme, set func(P)) {
	s.AddTypeDefaultingFunc(P(new(T)), func(obj any) { set(obj.(P)) })
}

// OrElse sets a pointer that is nil.
func OrElse[T any](to **T, value T) {
	if *to == nil {
		*to = &value
	}
}

// ZeroElse sets a value that is zero.
func ZeroElse[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

func defaultBinding(role *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	ZeroElse(&role.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if subjects[i].APIGroup == "" && (subjects[i].Kind == rbacv1.UserKind || subjects[i].Kind == rbacv1.GroupKind) {
			subjects[i].APIGroup = rbacv1.GroupName
		}
	}
}

func defaultNetworkPolicy(o *networkingv1.NetworkPolicy) {
	ports := func(ports []networkingv1.NetworkPolicyPort) {
		for i := range ports {
			OrElse(&ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
	for _, rule := range o.Spec.Ingress {
		ports(rule.Ports)
	}
	for _, rule := range o.Spec.Egress {
		ports(rule.Ports)
	}
	if len(o.Spec.PolicyTypes) == 0 {
		o.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(o.Spec.Egress) > 0 {
			o.Spec.PolicyTypes = append(o.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
}

// busyShare is the default CPU utilization of an autoscaler, in percent.
const busyShare = 80

func Autoscaler(o *autoscalingv2.HorizontalPodAutoscaler) {
	OrElse(&o.Spec.MinReplicas, 1)
	if len(o.Spec.Metrics) == 0 {
		o.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(busyShare))}}}}
	}
	if b := o.Spec.Behavior; b != nil {
		share := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}
		OrElse(&b.ScaleUp, autoscalingv2.HPAScalingRules{})
		OrElse(&b.ScaleUp.StabilizationWindowSeconds, 0)
		defaultScaling(b.ScaleUp, autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}, share)
		OrElse(&b.ScaleDown, autoscalingv2.HPAScalingRules{})
		defaultScaling(b.ScaleDown, share)
	}
}

func defaultScaling(rules *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	OrElse(&rules.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if rules.Policies == nil {
		rules.Policies = policies
	}
}

// Defaults of an admission webhook.
const (
	hookSeconds = 10
	HookPort    = 443
)

func defaultValidatingHooks(o *admissionv1.ValidatingWebhookConfiguration) {
	for i := range o.Webhooks {
		w := &o.Webhooks[i]
		defaultHook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.Rules, w.ClientConfig.Service)
	}
}

func defaultMutatingHooks(o *admissionv1.MutatingWebhookConfiguration) {
	for i := range o.Webhooks {
		w := &o.Webhooks[i]
		defaultHook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.Rules, w.ClientConfig.Service)
		OrElse(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
	}
}

func defaultHook(failure **admissionv1.FailurePolicyType, match **admissionv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector, seconds **int32,
	rules []admissionv1.RuleWithOperations, service *admissionv1.ServiceReference) {
	OrElse(failure, admissionv1.Fail)
	OrElse(match, admissionv1.Equivalent)
	OrElse(namespaces, metav1.LabelSelector{})
	OrElse(objects, metav1.LabelSelector{})
	OrElse(seconds, hookSeconds)
	for i := range rules {
		OrElse(&rules[i].Scope, admissionv1.AllScopes)
	}
	if service != nil {
		OrElse(&service.Port, HookPort)
	}
}

func defaultEndpoints(o *corev1.Endpoints) {
	for i := range o.Subsets {
		for j := range o.Subsets[i].Ports {
			ZeroElse(&o.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
		}
	}
}

func defaultEndpointSlice(o *discoveryv1.EndpointSlice) {
	for i := range o.Ports {
		OrElse(&o.Ports[i].Name, "")
		OrElse(&o.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}

func defaultIngressClass(o *networkingv1.IngressClass) {
	if o.Spec.Parameters != nil {
		OrElse(&o.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
	}
}

func percent(text string) intstr.IntOrString { return intstr.FromString(text) }
