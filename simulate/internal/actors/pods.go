// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/seededrand"
)

// StageAnnotation on a Pod or a Pod template makes its containers misbehave. Its values are
// the Stage constants. Actors read it.
const StageAnnotation = "simulate.flyball.dev/stage"

const (
	// StageNotReady: containers run and never become ready. A Node with it does not become
	// ready.
	StageNotReady = "NotReady"
	// StageCrashLoop: containers fail soon after each start.
	StageCrashLoop = "CrashLoop"
	// StageImagePullBackOff: the image does not exist.
	StageImagePullBackOff = "ImagePullBackOff"
	// StageFailed: containers that should end fail.
	StageFailed = "Failed"
	// StageRunning: containers that should end keep running.
	StageRunning = "Running"
)

const (
	simulatedNode = "simulated-node"
	// The delay before a crashed container restarts starts at firstRestart and doubles up
	// to longestRestart.
	firstRestart   = 10 * time.Second
	longestRestart = 5 * time.Minute
)

var nodeResource = schema.GroupResource{Resource: "nodes"}

// podKeeper is the scheduler and the kubelet: it binds Pods to nodes and takes them through
// their phases.
type podKeeper struct {
	*controllers
	addresses map[netip.Addr]Reference
}

func (podKeeper) name() string { return "pods" }

func (a podKeeper) observe(c revisions.Change, look func(Reference)) {
	switch c.Resource {
	case object.Pods:
		if c.After == nil {
			a.freeAddress(c.Before)
			return
		}
		look(aboutOf(c))
	case nodeResource:
		for _, about := range a.unscheduled() {
			look(about)
		}
	}
}

// unscheduled returns the Pods that wait for a node.
func (a podKeeper) unscheduled() (out []Reference) {
	for _, namespace := range a.index.namespacesOf(object.Pods) {
		for _, about := range a.index.each(object.Pods, namespace) {
			if pod := read[corev1.Pod](a.controllers, about); pod != nil && pod.Spec.NodeName == "" && lives(pod) {
				out = append(out, about)
			}
		}
	}
	return out
}

func (a podKeeper) act(ctx context.Context, about Reference) (time.Duration, error) {
	pod := read[corev1.Pod](a.controllers, about)
	switch {
	case pod == nil:
	case !object.Unset(pod.DeletionTimestamp):
		return 0, a.finish(ctx, about, pod)
	case ended(pod):
	case pod.Spec.NodeName == "":
		return 0, a.schedule(ctx, about, pod)
	case pod.Status.Phase != corev1.PodRunning && len(pod.Status.ContainerStatuses) == 0:
		return 0, a.report(ctx, about, waiting)
	case pod.Status.Phase == corev1.PodPending:
		return a.start(ctx, about, pod)
	case pod.Status.Phase == corev1.PodRunning:
		return a.run(ctx, about, pod)
	}
	return 0, nil
}

// finish ends the containers of a deleted Pod, and then removes it unless a finalizer keeps
// it.
func (a podKeeper) finish(ctx context.Context, about Reference, pod *corev1.Pod) error {
	if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace > 0 {
		if held := a.get(about); held != nil {
			return a.remove(ctx, about, held, "", new(int64(0)))
		}
	}
	return nil
}

// schedule binds a Pod to the node that fits and has the fewest Pods. A cluster without
// Nodes counts as one node.
func (a podKeeper) schedule(ctx context.Context, about Reference, pod *corev1.Pod) error {
	if len(pod.Spec.SchedulingGates) > 0 {
		return a.report(ctx, about, func(pod *corev1.Pod) {
			unscheduled(pod, corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates")
		})
	}
	nodes := a.index.each(nodeResource, "")
	if len(nodes) == 0 {
		return a.bind(ctx, about, simulatedNode)
	}
	best, least := "", 0
	for _, each := range nodes {
		node := read[corev1.Node](a.controllers, each)
		if node == nil || !fits(pod, node) {
			continue
		}
		if n := a.podsOn(node.Name); best == "" || n < least {
			best, least = node.Name, n
		}
	}
	if best != "" {
		return a.bind(ctx, about, best)
	}
	return a.report(ctx, about, func(pod *corev1.Pod) {
		unscheduled(pod, corev1.PodReasonUnschedulable, fmt.Sprintf("0/%d nodes are available", len(nodes)))
	})
}

// podsOn returns the number of Pods on a node that have not ended.
func (a podKeeper) podsOn(node string) (n int) {
	for _, namespace := range a.index.namespacesOf(object.Pods) {
		for _, about := range a.index.each(object.Pods, namespace) {
			if obj := a.get(about); obj != nil && !finished(obj) && object.NodeOf(obj) == node {
				n++
			}
		}
	}
	return n
}

// fits reports whether a Pod may run on a node, by its labels and taints.
func fits(pod *corev1.Pod, node *corev1.Node) bool {
	if only, one := onlyNode(pod); one && only != node.Name {
		return false
	}
	for name, value := range pod.Spec.NodeSelector {
		if node.Labels[name] != value {
			return false
		}
	}
	if node.Spec.Unschedulable && !tolerates(pod, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return false
	}
	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(pod, taint)
	})
}

func tolerates(pod *corev1.Pod, taint corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" || t.Key == taint.Key) &&
			(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
	})
}

// bind binds a Pod to a node.
func (a podKeeper) bind(ctx context.Context, about Reference, node string) error {
	return a.cluster.Bind(ctx, byScheduler, about, node)
}

func unscheduled(pod *corev1.Pod, reason, message string) {
	setPodCondition(pod, corev1.PodScheduled, corev1.ConditionFalse, reason, message)
}

// report writes the status of a Pod, as a kubelet does.
func (a podKeeper) report(ctx context.Context, about Reference, edit func(*corev1.Pod)) error {
	_, err := update(ctx, a.controllers, byKubelet, about, "status", func(pod *corev1.Pod) {
		edit(pod)
		pod.Status.ObservedGeneration = pod.Generation
	})
	return err
}

// address returns an address that no other Pod has.
func (a podKeeper) address(about Reference) string {
	for try := 0; ; try++ {
		n := seededrand.Random(a.seed, "pod address", about.String(), try).Uint32()
		address := netip.AddrFrom4([4]byte{10, 128 | byte(n>>16), byte(n >> 8), byte(n)})
		if who, taken := a.addresses[address]; !taken || who == about {
			a.addresses[address] = about
			return address.String()
		}
	}
}

func (a podKeeper) freeAddress(pod *object.Object) {
	status, _ := pod.Fields["status"].(map[string]any)
	text, _ := status["podIP"].(string)
	if address, err := netip.ParseAddr(text); err == nil {
		delete(a.addresses, address)
	}
}

func setPodCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	is := corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: object.Now(), ObservedGeneration: pod.Generation}
	was := podCondition(pod, kind)
	if was == nil {
		pod.Status.Conditions = append(pod.Status.Conditions, is)
		return
	}
	if was.Status == status {
		is.LastTransitionTime = was.LastTransitionTime
	}
	*was = is
}

// hostAddress is the address of every node.
var hostAddress = []corev1.HostIP{{IP: "192.0.2.1"}}

// waiting sets the status of a Pod whose containers are being created.
func waiting(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodPending
	pod.Status.HostIP, pod.Status.HostIPs = hostAddress[0].IP, hostAddress
	pod.Status.StartTime = new(object.Now())
	unready := "containers with unready status: " + containerNames(pod)
	setPodCondition(pod, corev1.PodReadyToStartContainers, corev1.ConditionFalse, "", "")
	setPodCondition(pod, corev1.PodInitialized, corev1.ConditionTrue, "", "")
	setPodCondition(pod, corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", unready)
	setPodCondition(pod, corev1.ContainersReady, corev1.ConditionFalse, "ContainersNotReady", unready)
	setPodCondition(pod, corev1.PodScheduled, corev1.ConditionTrue, "", "")
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, State: state, Started: new(false)})
	}
}

func containerNames(pod *corev1.Pod) string {
	var names []string
	for _, container := range pod.Spec.Containers {
		names = append(names, container.Name)
	}
	return fmt.Sprint(names)
}

func stageOf(m metav1.Object) string { return m.GetAnnotations()[StageAnnotation] }
