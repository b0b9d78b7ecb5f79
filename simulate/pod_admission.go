// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/validation"
)

// What a real server's own admission plugins decide about Pods: the priority
// that its class gives one, and the class of its runtime.

var (
	priorityClasses = schema.GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}
	runtimeClasses  = schema.GroupResource{Group: "node.k8s.io", Resource: "runtimeclasses"}
)

// stored is an object that there is; nil: there is none.
func (s *Server) stored(r schema.GroupResource, name string) *object.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.log.Get(r, types.NamespacedName{Name: name})
}

// prioritize gives a Pod the priority of its class, or of the default one.
func (s *Server) prioritize(q *writing, pod *corev1.Pod) error {
	priority, preemption := int32(0), corev1.PreemptLowerPriority
	if name := pod.Spec.PriorityClassName; name != "" {
		class, err := s.priorityClass(name)
		if err != nil {
			return apierrors.NewForbidden(q.kind.GroupResource(), pod.Name, err)
		}
		priority = class.Value
		if class.PreemptionPolicy != nil {
			preemption = *class.PreemptionPolicy
		}
	} else if class := s.defaultPriority(); class != nil {
		priority, pod.Spec.PriorityClassName = class.Value, class.Name
		if class.PreemptionPolicy != nil {
			preemption = *class.PreemptionPolicy
		}
	}
	if given := pod.Spec.Priority; given != nil && *given != priority {
		return apierrors.NewForbidden(q.kind.GroupResource(), pod.Name, fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *given, priority))
	}
	if given := pod.Spec.PreemptionPolicy; given != nil && *given != preemption {
		return apierrors.NewForbidden(q.kind.GroupResource(), pod.Name, fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *given, preemption))
	}
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = &priority, &preemption
	return nil
}

func (s *Server) priorityClass(name string) (*schedulingv1.PriorityClass, error) {
	if obj := s.stored(priorityClasses, name); obj != nil {
		return object.TypedOf[schedulingv1.PriorityClass](obj)
	}
	if value, ok := validation.SystemPriorities[name]; ok {
		return &schedulingv1.PriorityClass{Value: value}, nil
	}
	return nil, fmt.Errorf("no PriorityClass with name %s was found", name)
}

// defaultPriority is the class of Pods without one: of several, that of the
// lowest value. nil: there is none.
func (s *Server) defaultPriority() (found *schedulingv1.PriorityClass) {
	s.mu.Lock()
	classes, _ := s.mu.log.List(priorityClasses, s.mu.log.Revision)
	s.mu.Unlock()
	for _, obj := range classes {
		class, err := object.TypedOf[schedulingv1.PriorityClass](obj)
		if err == nil && class.GlobalDefault && (found == nil || class.Value < found.Value) {
			found = class
		}
	}
	return found
}

// runnable refuses a Pod whose class of runtime is not there, or which says
// itself what only such a class can say.
func (s *Server) runnable(q *writing, pod *corev1.Pod) error {
	var overhead bool
	if name := pod.Spec.RuntimeClassName; name != nil && *name != "" {
		class := s.stored(runtimeClasses, *name)
		if class == nil {
			return apierrors.NewForbidden(q.kind.GroupResource(), pod.Name, fmt.Errorf("pod rejected: RuntimeClass %q not found", *name))
		}
		_, overhead = class.Fields["overhead"]
	}
	if pod.Spec.Overhead != nil && !overhead {
		return apierrors.NewForbidden(q.kind.GroupResource(), pod.Name, errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"))
	}
	return nil
}
