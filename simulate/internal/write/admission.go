// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/validation"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
)

// reviewed returns a write of q as admission sees it.
func (q *Request) reviewed(operation string, obj, old *object.Object) *webhooks.Call {
	return &webhooks.Call{
		Kind: q.Kind, Namespace: q.Namespace, Name: q.Name, Subresource: q.Subresource, User: q.User, URL: q.URL,
		Operation: operation, Object: obj, Old: old, DryRun: q.DryRun, Deleting: q.deleting, Warn: q.Warn,
	}
}

// mutate returns obj as mutating admission leaves it.
func (p *Path) mutate(ctx context.Context, q *Request, operation string, obj, old *object.Object) (*object.Object, error) {
	call := q.reviewed(operation, obj, old)
	if err := p.Admission.Mutate(ctx, call); err != nil {
		return nil, err
	}
	return call.Object, nil
}

// validate warns of what is unwise in a valid object, and applies Pod Security admission and
// validating webhooks. old is nil for a create.
func (p *Path) validate(ctx context.Context, q *Request, operation string, obj, old *object.Object) error {
	if q.Subresource == "" {
		for _, text := range warningsAbout(q.Kind, old, obj) {
			q.Warn(text)
		}
	}
	if err := checkPodSecurity(p.Store, podSecurityWrite{Kind: q.Kind, Subresource: q.Subresource, Old: old, Object: obj, Warn: q.Warn}); err != nil {
		return err
	}
	return p.Admission.Validate(ctx, q.reviewed(operation, obj, old))
}

// CheckNamespace refuses a new object in a namespace that does not exist or is being deleted.
func (p *Path) CheckNamespace(q *Request, name string) error {
	if !q.Kind.Namespaced {
		return nil
	}
	home := p.stored(object.Namespaces, q.Namespace)
	if home == nil {
		return apierrors.NewNotFound(object.Namespaces, q.Namespace)
	}
	if object.Unset(home.Meta().GetDeletionTimestamp()) {
		return nil
	}
	err := apierrors.NewForbidden(q.Kind.GroupResource(), name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", q.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", q.Namespace), Field: "metadata.namespace"})
	return err
}

// What the admission plugins of a real server set and check in Pods: the priority of their
// class, and the class of their runtime.

var (
	priorityClasses = schema.GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}
	runtimeClasses  = schema.GroupResource{Group: "node.k8s.io", Resource: "runtimeclasses"}
)

// stored returns an object without a namespace; nil: there is none.
func (p *Path) stored(r schema.GroupResource, name string) *object.Object {
	return p.Store.Get(r, types.NamespacedName{Name: name})
}

// setPriority gives a Pod the priority of its class, or of the default one.
func (p *Path) setPriority(q *Request, pod *corev1.Pod) error {
	priority, preemption := int32(0), corev1.PreemptLowerPriority
	if name := pod.Spec.PriorityClassName; name != "" {
		class, err := p.priorityClass(name)
		if err != nil {
			return apierrors.NewForbidden(q.Kind.GroupResource(), pod.Name, err)
		}
		priority = class.Value
		if class.PreemptionPolicy != nil {
			preemption = *class.PreemptionPolicy
		}
	} else if class := p.defaultPriority(); class != nil {
		priority, pod.Spec.PriorityClassName = class.Value, class.Name
		if class.PreemptionPolicy != nil {
			preemption = *class.PreemptionPolicy
		}
	}
	if given := pod.Spec.Priority; given != nil && *given != priority {
		return apierrors.NewForbidden(q.Kind.GroupResource(), pod.Name, fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *given, priority))
	}
	if given := pod.Spec.PreemptionPolicy; given != nil && *given != preemption {
		return apierrors.NewForbidden(q.Kind.GroupResource(), pod.Name, fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *given, preemption))
	}
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = &priority, &preemption
	return nil
}

func (p *Path) priorityClass(name string) (*schedulingv1.PriorityClass, error) {
	if obj := p.stored(priorityClasses, name); obj != nil {
		return object.TypedOf[schedulingv1.PriorityClass](obj)
	}
	if value, ok := validation.SystemPriorities[name]; ok {
		return &schedulingv1.PriorityClass{Value: value}, nil
	}
	return nil, fmt.Errorf("no PriorityClass with name %s was found", name)
}

// defaultPriority returns the class of Pods without one: the default class of the lowest
// value. nil: there is none.
func (p *Path) defaultPriority() (found *schedulingv1.PriorityClass) {
	for _, obj := range p.Store.Lists(priorityClasses)[0] {
		class, err := object.TypedOf[schedulingv1.PriorityClass](obj)
		if err == nil && class.GlobalDefault && (found == nil || class.Value < found.Value) {
			found = class
		}
	}
	return found
}

// checkRuntime refuses a Pod whose runtime class does not exist, or which sets an overhead
// that its class does not define.
func (p *Path) checkRuntime(q *Request, pod *corev1.Pod) error {
	var overhead bool
	if name := pod.Spec.RuntimeClassName; name != nil && *name != "" {
		class := p.stored(runtimeClasses, *name)
		if class == nil {
			return apierrors.NewForbidden(q.Kind.GroupResource(), pod.Name, fmt.Errorf("pod rejected: RuntimeClass %q not found", *name))
		}
		_, overhead = class.Fields["overhead"]
	}
	if pod.Spec.Overhead != nil && !overhead {
		return apierrors.NewForbidden(q.Kind.GroupResource(), pod.Name, errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"))
	}
	return nil
}
