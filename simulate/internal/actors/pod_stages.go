// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// start starts the containers of a Pod, unless they cannot start.
func (a podKeeper) start(ctx context.Context, about Reference, pod *corev1.Pod) (time.Duration, error) {
	if stageOf(pod) == StageImagePullBackOff {
		return 0, a.report(ctx, about, func(pod *corev1.Pod) {
			eachContainer(pod, func(c *corev1.ContainerStatus) {
				c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q", c.Image)}}
			})
		})
	}
	address := a.address(about)
	return 0, a.report(ctx, about, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
		if pod.Spec.HostNetwork {
			pod.Status.PodIP, pod.Status.PodIPs = pod.Status.HostIP, []corev1.PodIP{{IP: pod.Status.HostIP}}
		}
		setPodCondition(pod, corev1.PodReadyToStartContainers, corev1.ConditionTrue, "", "")
		running(pod)
	})
}

func eachContainer(pod *corev1.Pod, edit func(*corev1.ContainerStatus)) {
	for i := range pod.Status.ContainerStatuses {
		edit(&pod.Status.ContainerStatuses[i])
	}
}

// running sets the status of a Pod whose containers run.
func running(pod *corev1.Pod) {
	ready := stageOf(pod) != StageNotReady && stageOf(pod) != StageCrashLoop
	eachContainer(pod, func(c *corev1.ContainerStatus) {
		c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: object.Now()}}
		c.Ready, c.Started = ready, new(true)
		c.ImageID = c.Image
		c.ContainerID = fmt.Sprintf("simulated://%s/%s/%d", pod.UID, c.Name, c.RestartCount)
	})
	setReady(pod, ready, "ContainersNotReady")
}

func setReady(pod *corev1.Pod, ready bool, reason string) {
	status, message := corev1.ConditionTrue, ""
	switch {
	case ready:
		reason = ""
	case reason == "PodCompleted":
		status = corev1.ConditionFalse
	default:
		status, message = corev1.ConditionFalse, "containers with unready status: "+containerNames(pod)
	}
	gates := status
	for _, gate := range pod.Spec.ReadinessGates {
		if is := podCondition(pod, gate.ConditionType); is == nil || is.Status != corev1.ConditionTrue {
			gates = corev1.ConditionFalse
		}
	}
	if gates != status {
		setPodCondition(pod, corev1.PodReady, gates, "ReadinessGatesNotReady", "corresponding condition of a readiness gate is not \"True\"")
	} else {
		setPodCondition(pod, corev1.PodReady, status, reason, message)
	}
	setPodCondition(pod, corev1.ContainersReady, status, reason, message)
}

// run takes the next step of a running Pod: its containers end, crash or restart.
func (a podKeeper) run(ctx context.Context, about Reference, pod *corev1.Pod) (time.Duration, error) {
	stage := stageOf(pod)
	if stage == StageCrashLoop && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return a.crash(ctx, about, pod)
	}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways && stage == "" && isReady(pod) {
		return 0, nil
	}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || stage == StageRunning || stage == StageNotReady {
		return 0, a.report(ctx, about, func(pod *corev1.Pod) {
			if stage == StageNotReady {
				setReady(pod, false, "ContainersNotReady")
				eachContainer(pod, func(c *corev1.ContainerStatus) { c.Ready = false })
			} else if !isReady(pod) {
				running(pod)
			}
		})
	}
	failing := stage == StageFailed || stage == StageCrashLoop
	if failing && pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		return a.crash(ctx, about, pod)
	}
	return 0, a.report(ctx, about, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodSucceeded
		if failing {
			pod.Status.Phase = corev1.PodFailed
		}
		eachContainer(pod, func(c *corev1.ContainerStatus) { c.State, c.Ready, c.Started = exited(c, failing), false, new(false) })
		setReady(pod, false, map[bool]string{true: "PodFailed", false: "PodCompleted"}[failing])
	})
}

// crash fails running containers, and restarts those whose delay is over. again is the
// delay of the next restart.
func (a podKeeper) crash(ctx context.Context, about Reference, pod *corev1.Pod) (again time.Duration, err error) {
	if len(pod.Status.ContainerStatuses) == 0 {
		return 0, nil
	}
	first := pod.Status.ContainerStatuses[0]
	pause := min(firstRestart<<min(first.RestartCount, 10), longestRestart)
	if first.State.Waiting != nil && first.LastTerminationState.Terminated != nil {
		if left := time.Until(first.LastTerminationState.Terminated.FinishedAt.Add(pause)); left > 0 {
			return left, nil
		}
		return 0, a.report(ctx, about, func(pod *corev1.Pod) {
			eachContainer(pod, func(c *corev1.ContainerStatus) { c.RestartCount++ })
			running(pod)
			eachContainer(pod, func(c *corev1.ContainerStatus) { c.Ready = false })
			setReady(pod, false, "ContainersNotReady")
		})
	}
	return pause, a.report(ctx, about, func(pod *corev1.Pod) {
		eachContainer(pod, func(c *corev1.ContainerStatus) {
			c.LastTerminationState, c.Ready, c.Started = exited(c, true), false, new(false)
			c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", pause, c.Name, pod.Name, pod.Namespace, pod.UID)}}
		})
		setReady(pod, false, "ContainersNotReady")
	})
}

func exited(c *corev1.ContainerStatus, failing bool) corev1.ContainerState {
	end := &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: object.Now(), ContainerID: c.ContainerID}
	if c.State.Running != nil {
		end.StartedAt = c.State.Running.StartedAt
	}
	if failing {
		end.ExitCode, end.Reason = 1, "Error"
	}
	return corev1.ContainerState{Terminated: end}
}
