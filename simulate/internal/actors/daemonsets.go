// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"cmp"
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// daemonSetController runs one Pod on each node that fits. A cluster without Nodes counts
// as one node.
type daemonSetController struct{ *controllers }

var daemonSetResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "daemonsets"}

func (daemonSetController) name() string { return "daemonsets" }

func (a daemonSetController) observe(c revisions.Change, look func(Reference)) {
	a.observePods(c, daemonSetResource, look)
	if c.Resource == nodeResource {
		for _, namespace := range a.index.namespacesOf(daemonSetResource) {
			for _, about := range a.index.each(daemonSetResource, namespace) {
				look(about)
			}
		}
	}
}

// nodesFor returns the nodes that a Pod of a DaemonSet may run on.
func (a daemonSetController) nodesFor(set *appsv1.DaemonSet) (out []string) {
	pod := &corev1.Pod{Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, ofDaemons...)
	nodes := a.index.each(nodeResource, "")
	for _, about := range nodes {
		if node := read[corev1.Node](a.controllers, about); node != nil && fits(pod, node) {
			out = append(out, node.Name)
		}
	}
	if len(nodes) == 0 {
		out = append(out, simulatedNode)
	}
	return out
}

// ofDaemons are the taints that Pods of DaemonSets tolerate.
var ofDaemons = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

func (a daemonSetController) act(ctx context.Context, about Reference) (time.Duration, error) {
	set := readWhole[appsv1.DaemonSet](a.controllers, about)
	if set == nil || set.Spec.Selector == nil {
		return 0, nil
	}
	ending := !object.Unset(set.DeletionTimestamp)
	pods, err := claimed[corev1.Pod](ctx, a.controllers, claim{about: about, uid: set.UID, kind: "DaemonSet", selector: set.Spec.Selector, ending: ending}, object.Pods)
	if err != nil {
		return 0, err
	}
	kept := pastTemplates{a.controllers, set, appsv1.SchemeGroupVersion.WithKind("DaemonSet")}
	_, hash, err := kept.saveRevision(ctx, &set.Spec.Template)
	if err != nil {
		return 0, err
	}
	nodes, by := a.nodesFor(set), map[string][]*corev1.Pod{}
	for _, pod := range pods {
		by[boundFor(pod)] = append(by[boundFor(pod)], pod)
	}
	if !ending {
		if err := a.fit(ctx, set, hash, nodes, pods, by); err != nil {
			return 0, err
		}
	}
	status, again := daemonStatus(set, hash, nodes, by)
	if _, err := update(ctx, a.controllers, byControllers, about, "status", func(s *appsv1.DaemonSet) { s.Status = status }); err != nil {
		return 0, err
	}
	return again, kept.tidy(ctx, set.Spec.RevisionHistoryLimit, func(of string) bool {
		return of == hash || slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Labels[appsv1.ControllerRevisionHashLabelKey] == of })
	})
}

// mostUnavailable returns how many Pods of so many nodes a rolling update may make unavailable.
func mostUnavailable(set *appsv1.DaemonSet, nodes int) int {
	most := 1
	if u := set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.MaxUnavailable != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(u.MaxUnavailable, nodes, true); err == nil {
			most = max(n, 1)
		}
	}
	return most
}

// boundFor returns the node that a Pod of a DaemonSet runs on or is meant for.
func boundFor(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	node, _ := onlyNode(pod)
	return node
}

// onlyNode returns the node that the affinity of a Pod names; empty if it names none.
func onlyNode(pod *corev1.Pod) (string, bool) {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil || pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return "", false
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == "metadata.name" && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0], true
			}
		}
	}
	return "", false
}

// fit creates the missing Pods, deletes those on other nodes, and replaces those of an
// older template, as many at a time as may be unavailable.
func (a daemonSetController) fit(ctx context.Context, set *appsv1.DaemonSet, hash string, nodes []string, pods []*corev1.Pod, by map[string][]*corev1.Pod) error {
	missing := 0
	for _, node := range nodes {
		living := slices.ContainsFunc(by[node], lives)
		if len(by[node]) == 0 {
			if err := a.add(ctx, set, hash, node); err != nil {
				return err
			}
		}
		if !living || !slices.ContainsFunc(by[node], isReady) {
			missing++
		}
	}
	most := mostUnavailable(set, len(nodes))
	for _, pod := range pods {
		old := pod.Labels[appsv1.ControllerRevisionHashLabelKey] != hash && set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType
		switch {
		case !object.Unset(pod.DeletionTimestamp):
			continue
		case ended(pod) || !slices.Contains(nodes, boundFor(pod)) || old && !isReady(pod):
		case old && missing < most:
			missing++
		default:
			continue
		}
		if err := a.discard(ctx, Reference{object.Pods, object.NameOf(pod)}); err != nil {
			return err
		}
	}
	return nil
}

func (a daemonSetController) add(ctx context.Context, set *appsv1.DaemonSet, hash, node string) error {
	pod := podOf(&set.Spec.Template, set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.ControllerRevisionHashLabelKey, hash)
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, ofDaemons...)
	only := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	pod.Spec.Affinity = cmp.Or(pod.Spec.Affinity, &corev1.Affinity{})
	pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{only}}}}}
	_, err := a.create(ctx, byControllers, object.Pods, pod)
	return err
}

func daemonStatus(set *appsv1.DaemonSet, hash string, nodes []string, by map[string][]*corev1.Pod) (is appsv1.DaemonSetStatus, again time.Duration) {
	is = appsv1.DaemonSetStatus{ObservedGeneration: set.Generation, DesiredNumberScheduled: int32(len(nodes)), Conditions: set.Status.Conditions, CollisionCount: set.Status.CollisionCount}
	for node, pods := range by {
		if !slices.Contains(nodes, node) {
			is.NumberMisscheduled++
			continue
		}
		is.CurrentNumberScheduled++
		i := slices.IndexFunc(pods, lives)
		if i < 0 {
			continue
		}
		if pods[i].Labels[appsv1.ControllerRevisionHashLabelKey] == hash {
			is.UpdatedNumberScheduled++
		}
		if !isReady(pods[i]) {
			continue
		}
		is.NumberReady++
		if wait := availableIn(pods[i], set.Spec.MinReadySeconds); wait == 0 {
			is.NumberAvailable++
		} else if again == 0 || wait < again {
			again = wait
		}
	}
	is.NumberUnavailable = is.DesiredNumberScheduled - is.NumberAvailable
	return is, again
}
