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

// claimProtection lets a deleted PersistentVolumeClaim go when no Pod on a node uses it. The server has
// given it the finalizer.
type claimProtection struct{ *controllers }

const claimFinalizer = "kubernetes.io/pvc-protection"

func (claimProtection) name() string { return "pvc-protection" }

func (a claimProtection) observe(c revisions.Change, look func(Reference)) {
	switch {
	case c.Resource == volumeClaimResource && c.After != nil:
		look(aboutOf(c))
	case c.Resource == object.Pods && c.After == nil:
		for _, claim := range a.index.each(volumeClaimResource, c.Key.Namespace) {
			look(claim)
		}
	}
}

func (a claimProtection) act(ctx context.Context, about Reference) (time.Duration, error) {
	claim := a.get(about)
	if claim == nil || object.Unset(claim.Meta().GetDeletionTimestamp()) || !slices.Contains(claim.Meta().GetFinalizers(), claimFinalizer) {
		return 0, nil
	}
	for _, each := range a.index.each(object.Pods, about.Namespace) {
		if pod := read[corev1.Pod](a.controllers, each); pod != nil && pod.Spec.NodeName != "" && mounts(pod, about.Name) {
			return 0, nil
		}
	}
	return 0, collector(a).release(ctx, about, claimFinalizer)
}

func mounts(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}
