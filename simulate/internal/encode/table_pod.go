// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

func podPrinters() printers {
	return printers{"v1 Pod": printed(heads("Name|Ready|Status|Restarts|Age|+IP|+Node|+Nominated Node|+Readiness Gates"), podCells)}
}

// podSummary summarizes the containers of a Pod.
type podSummary struct {
	ready, total, restarts int
	status                 string
	restarted              metav1.Time // time of the last restart
}

func podCells(pod *corev1.Pod) []any {
	s := summaryOf(pod)
	restarts := strconv.Itoa(s.restarts)
	if s.restarts > 0 && !s.restarted.IsZero() {
		restarts += fmt.Sprintf(" (%s ago)", age(s.restarted))
	}
	ip := pod.Status.PodIP
	if len(pod.Status.PodIPs) > 0 {
		ip = pod.Status.PodIPs[0].IP
	}
	return []any{
		pod.Name, fmt.Sprintf("%d/%d", s.ready, s.total), s.status, restarts, age(pod.CreationTimestamp),
		or(ip, cellNone), or(pod.Spec.NodeName, cellNone), or(pod.Status.NominatedNodeName, cellNone), gatesOf(pod),
	}
}

func summaryOf(pod *corev1.Pod) podSummary {
	s := podSummary{total: len(pod.Spec.Containers), status: or(pod.Status.Reason, string(pod.Status.Phase))}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.status = c.Reason
		}
	}
	for i := range pod.Spec.InitContainers {
		if sidecar(pod, pod.Spec.InitContainers[i].Name) {
			s.total++
		}
	}
	if !s.begins(pod) || slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodInitialized && c.Status == corev1.ConditionTrue
	}) {
		s.runs(pod)
	}
	if !object.Unset(pod.DeletionTimestamp) {
		switch phase := pod.Status.Phase; {
		case pod.Status.Reason == "NodeLost":
			s.status = "Unknown"
		case phase != corev1.PodSucceeded && phase != corev1.PodFailed:
			s.status = "Terminating"
		}
	}
	return s
}

// sidecar reports whether an init container keeps running beside the others.
func sidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// restart counts the restarts of a container.
func (s *podSummary) restart(c corev1.ContainerStatus) {
	s.restarts += int(c.RestartCount)
	if last := c.LastTerminationState.Terminated; last != nil && s.restarted.Before(&last.FinishedAt) {
		s.restarted = last.FinishedAt
	}
}

// begins reads the init containers, and reports whether one is not finished.
func (s *podSummary) begins(pod *corev1.Pod) bool {
	for i, c := range pod.Status.InitContainerStatuses {
		s.restart(c)
		ended, waits := c.State.Terminated, c.State.Waiting
		switch {
		case ended != nil && ended.ExitCode == 0:
			continue
		case sidecar(pod, c.Name) && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case ended != nil:
			s.status = "Init:" + endOf(ended)
		case waits != nil && waits.Reason != "" && waits.Reason != "PodInitializing":
			s.status = "Init:" + waits.Reason
		default:
			s.status = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		return true
	}
	return false
}

// runs reads the containers. Of init containers, it counts the restarts of sidecars.
func (s *podSummary) runs(pod *corev1.Pod) {
	s.restarts, s.restarted = 0, metav1.Time{}
	for _, c := range pod.Status.InitContainerStatuses {
		if sidecar(pod, c.Name) {
			s.restart(c)
		}
	}
	running, failure := false, ""
	for _, c := range slices.Backward(pod.Status.ContainerStatuses) {
		s.restart(c)
		ended, waits := c.State.Terminated, c.State.Waiting
		switch {
		case waits != nil && waits.Reason != "":
			s.status = waits.Reason
		case ended != nil:
			if s.status = endOf(ended); ended.ExitCode != 0 {
				failure = s.status
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.status != "Completed" {
		return
	}
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case running && ready:
		s.status = "Running"
	case failure != "":
		s.status = failure
	case running:
		s.status = "NotReady"
	}
}

// endOf returns how a container ended.
func endOf(c *corev1.ContainerStateTerminated) string {
	switch {
	case c.Reason != "":
		return c.Reason
	case c.Signal != 0:
		return fmt.Sprintf("Signal:%d", c.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", c.ExitCode)
}

func gatesOf(pod *corev1.Pod) string {
	if len(pod.Spec.ReadinessGates) == 0 {
		return cellNone
	}
	open := 0
	for _, gate := range pod.Spec.ReadinessGates {
		if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(pod.Spec.ReadinessGates))
}

// conditionsOf returns the conditions that mark the row of a finished Pod.
func conditionsOf(k *kinds.Kind, obj *object.Object) []metav1.TableRowCondition {
	if k.GroupResource().String() != "pods" {
		return nil
	}
	status, _ := obj.Fields["status"].(map[string]any)
	switch phase, _ := status["phase"].(string); corev1.PodPhase(phase) {
	case corev1.PodSucceeded:
		return []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: phase, Message: "The pod has completed successfully."}}
	case corev1.PodFailed:
		return []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: phase, Message: "The pod failed."}}
	}
	return nil
}
