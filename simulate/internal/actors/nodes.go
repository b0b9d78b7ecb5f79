// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// nodeKeeper makes Nodes ready that have no Ready condition, unless StageAnnotation is
// StageNotReady.
type nodeKeeper struct{ *controllers }

func (nodeKeeper) name() string { return "nodes" }

func (nodeKeeper) observe(c revisions.Change, look func(Reference)) {
	if c.Resource == nodeResource && c.After != nil {
		look(aboutOf(c))
	}
}

func (a nodeKeeper) act(ctx context.Context, about Reference) (time.Duration, error) {
	node := read[corev1.Node](a.controllers, about)
	if node == nil || stageOf(node) == StageNotReady {
		return 0, nil
	}
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		_, err := update(ctx, a.controllers, byKubelet, about, "status", func(node *corev1.Node) {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
				LastHeartbeatTime: object.Now(), LastTransitionTime: object.Now()})
		})
		return 0, err
	}
	if node.Status.Conditions[i].Status != corev1.ConditionTrue {
		return 0, nil
	}
	_, err := update(ctx, a.controllers, byControllers, about, "", func(node *corev1.Node) {
		node.Spec.Taints = without(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	})
	return 0, err
}
