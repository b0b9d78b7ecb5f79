// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
)

// The label and annotations of the Leases of an operator whose replicas share its objects. The
// label is on all of them, with the name of the operator. See docs/sharding.md.
const (
	sharingLabel      = "flyball.dev/sharding"
	programAnnotation = "flyball.dev/program" // of the Lease with the plan
	stateAnnotation   = "flyball.dev/state"   // of the Lease of a replica
	podAnnotation     = "flyball.dev/pod"     // of the Lease of a replica: the name of its Pod
)

func isShared(l *coordinationv1.Lease) bool { return l.Labels[sharingLabel] != "" }

// isMember reports whether a Lease is that of a live replica, which holds it under its own name.
func isMember(l *coordinationv1.Lease) bool {
	return isShared(l) && l.Annotations[stateAnnotation] != "" && ptr.Deref(l.Spec.HolderIdentity, "") == l.Name
}

// longestOfMember is how much of a host name is in the name of a replica's Lease: its end.
const longestOfMember = 58

// hostOfMember returns the host name in the name of a replica's Lease, which is
// OPERATOR-HOST-CHANCE.
func hostOfMember(operator, name string) string {
	rest, ok := strings.CutPrefix(name, operator+"-")
	i := strings.LastIndex(rest, "-")
	if !ok || i < 0 {
		return ""
	}
	return rest[:i]
}

func candidateOf(pod *corev1.Pod, l *coordinationv1.Lease) candidate {
	if isShared(l) {
		return candidate{pod, l.Namespace + "/" + l.Labels[sharingLabel], ptr.Deref(l.Spec.HolderIdentity, "")}
	}
	return candidate{pod: pod, lease: l.Namespace + "/" + l.Name}
}

// shareOne reports whether all candidates share the objects of one operator.
func shareOne(all []candidate) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(c candidate) bool { return c.member == "" || c.lease != all[0].lease })
}

// withMembers returns leases with those of the replicas in place of that of the plan.
func (f *finder) withMembers(ctx context.Context, leases []*coordinationv1.Lease) (out []*coordinationv1.Lease, err error) {
	for _, l := range leases {
		if !isShared(l) || l.Annotations[programAnnotation] == "" {
			out = append(out, l)
			continue
		}
		of, err := listed[*coordinationv1.Lease](ctx, f, l.Namespace, client.MatchingLabels{sharingLabel: l.Labels[sharingLabel]})
		if err != nil {
			return nil, err
		}
		out = append(out, slices.DeleteFunc(of, func(l *coordinationv1.Lease) bool { return !isMember(l) })...)
	}
	return out, nil
}
