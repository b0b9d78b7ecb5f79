// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// report sets the status that the kubelet reports: that of a Pod that has run since its
// start, or, if version is not 0, of one whose readiness changed at that version.
func report(pod *corev1.Pod, d draw, o *owner, ip string, created, version int64) {
	ready := version == 0 || version%2 == 0
	init := created + int64(d.between(1, 4))
	start := init + int64(d.between(1, 8))
	up := start + int64(d.between(2, 40))
	changed := metav1.Unix(up, 0)
	if version != 0 {
		changed = metav1.NewTime(begun.Add(time.Duration(version-firstVersion) * time.Second))
	}
	s := &pod.Status
	s.Phase, s.QOSClass, s.ObservedGeneration = corev1.PodRunning, corev1.PodQOSBurstable, 1
	s.StartTime = of(metav1.Unix(created, 0))
	s.PodIP, s.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	s.Conditions = []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, after(init, 1)),
		condition(corev1.PodInitialized, metav1.Unix(init, 0)),
		condition(corev1.PodReady, changed),
		condition(corev1.ContainersReady, changed),
		condition(corev1.PodScheduled, metav1.Unix(created, 0)),
	}
	if !ready {
		for i := 2; i < 4; i++ {
			s.Conditions[i].Status, s.Conditions[i].Reason = corev1.ConditionFalse, "ContainersNotReady"
			s.Conditions[i].Message = "containers with unready status: [" + pod.Spec.Containers[0].Name + "]"
		}
	}
	for _, c := range pod.Spec.InitContainers {
		id := "containerd://" + d.digest()
		status := containerStatus(c, o, id)
		status.State.Terminated = &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: metav1.Unix(init, 0), FinishedAt: after(init, 1), ContainerID: id,
		}
		status.Started = of(false)
		s.InitContainerStatuses = append(s.InitContainerStatuses, status)
	}
	for _, c := range pod.Spec.Containers {
		status := containerStatus(c, o, "containerd://"+d.digest())
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Unix(start, 0)}
		if d.chance(5) {
			status.RestartCount = int32(d.between(1, 9))
			status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "OOMKilled", StartedAt: metav1.Unix(init, 0), FinishedAt: metav1.Unix(start, 0), ContainerID: "containerd://" + d.digest(),
			}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, status)
	}
	s.ContainerStatuses[0].Ready = ready
	// The kubelet sorts them by name.
	slices.SortFunc(s.ContainerStatuses, func(a, b corev1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) })
}

func condition(typ corev1.PodConditionType, at metav1.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: typ, Status: corev1.ConditionTrue, LastTransitionTime: at, ObservedGeneration: 1}
}

// containerStatus returns what the kubelet and the runtime report of any container.
func containerStatus(c corev1.Container, o *owner, id string) corev1.ContainerStatus {
	status := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: o.images[c.Image], ContainerID: id, Ready: true, Started: of(true),
		AllocatedResources: c.Resources.DeepCopy().Requests, Resources: c.Resources.DeepCopy(),
	}
	for _, m := range c.VolumeMounts {
		s := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			s.RecursiveReadOnly = of(corev1.RecursiveReadOnlyDisabled)
		}
		status.VolumeMounts = append(status.VolumeMounts, s)
	}
	return status
}
