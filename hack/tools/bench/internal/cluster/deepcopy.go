// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyObject implements runtime.Object.
func (in *Certificate) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopy returns a copy that shares no memory but that of strings.
func (in *Certificate) DeepCopy() *Certificate {
	out := *in
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	out.Spec.DNSNames, out.Spec.Usages = slices.Clone(in.Spec.DNSNames), slices.Clone(in.Spec.Usages)
	out.Spec.PrivateKey = pointed(in.Spec.PrivateKey)
	out.Status.Conditions = each(in.Status.Conditions, (*metav1.Condition).DeepCopyInto)
	out.Status.NotBefore, out.Status.NotAfter = in.Status.NotBefore.DeepCopy(), in.Status.NotAfter.DeepCopy()
	out.Status.RenewalTime = in.Status.RenewalTime.DeepCopy()
	return &out
}

// DeepCopyObject implements runtime.Object.
func (in *Database) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopy returns a copy that shares no memory but that of strings.
func (in *Database) DeepCopy() *Database {
	out := *in
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	from, to := &in.Spec, &out.Spec
	to.Storage.Size, to.Storage.WALSize = from.Storage.Size.DeepCopy(), from.Storage.WALSize.DeepCopy()
	to.Resources = *from.Resources.DeepCopy()
	to.Parameters = maps.Clone(from.Parameters)
	to.Roles = each(from.Roles, func(in, out *DatabaseRole) {
		*out = *in
		out.InRoles, out.PasswordSecret = slices.Clone(in.InRoles), pointed(in.PasswordSecret)
	})
	if to.Backup = pointed(from.Backup); to.Backup != nil {
		to.Backup.AccessKey, to.Backup.SecretKey = from.Backup.AccessKey.DeepCopy(), from.Backup.SecretKey.DeepCopy()
	}
	to.Monitoring.Queries = each(from.Monitoring.Queries, func(in, out *DatabaseQuery) {
		*out = *in
		out.Metrics = maps.Clone(in.Metrics)
	})
	to.Tolerations = each(from.Tolerations, (*corev1.Toleration).DeepCopyInto)
	out.Status.Conditions = each(in.Status.Conditions, (*metav1.Condition).DeepCopyInto)
	out.Status.Instances = each(in.Status.Instances, func(in, out *DatabaseInstance) {
		*out = *in
		out.LastTransition = *in.LastTransition.DeepCopy()
	})
	out.Status.CertificateExpiry = maps.Clone(in.Status.CertificateExpiry)
	out.Status.LastBackup = in.Status.LastBackup.DeepCopy()
	return &out
}

// DeepCopyObject implements runtime.Object.
func (in *Workflow) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopy returns a copy that shares no memory but that of strings.
func (in *Workflow) DeepCopy() *Workflow {
	out := *in
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	out.Spec.Arguments = slices.Clone(in.Spec.Arguments)
	out.Spec.Templates = each(in.Spec.Templates, func(in, out *WorkflowTemplate) {
		*out = *in
		out.Inputs, out.Command, out.Retries = slices.Clone(in.Inputs), slices.Clone(in.Command), pointed(in.Retries)
		out.Env = each(in.Env, (*corev1.EnvVar).DeepCopyInto)
		out.Resources = *in.Resources.DeepCopy()
	})
	out.Status.StartedAt, out.Status.FinishedAt = in.Status.StartedAt.DeepCopy(), in.Status.FinishedAt.DeepCopy()
	out.Status.Conditions = each(in.Status.Conditions, (*metav1.Condition).DeepCopyInto)
	if in.Status.Nodes != nil {
		out.Status.Nodes = make(map[string]WorkflowNode, len(in.Status.Nodes))
		for id, node := range in.Status.Nodes {
			node.Inputs, node.Outputs, node.Children = slices.Clone(node.Inputs), slices.Clone(node.Outputs), slices.Clone(node.Children)
			node.Resources = maps.Clone(node.Resources)
			out.Status.Nodes[id] = node
		}
	}
	return &out
}

// DeepCopyObject implements runtime.Object.
func (in *CertificateList) DeepCopyObject() runtime.Object {
	out := &CertificateList{TypeMeta: in.TypeMeta, ListMeta: *in.ListMeta.DeepCopy()}
	out.Items = each(in.Items, func(in, out *Certificate) { *out = *in.DeepCopy() })
	return out
}

// DeepCopyObject implements runtime.Object.
func (in *DatabaseList) DeepCopyObject() runtime.Object {
	out := &DatabaseList{TypeMeta: in.TypeMeta, ListMeta: *in.ListMeta.DeepCopy()}
	out.Items = each(in.Items, func(in, out *Database) { *out = *in.DeepCopy() })
	return out
}

// DeepCopyObject implements runtime.Object.
func (in *WorkflowList) DeepCopyObject() runtime.Object {
	out := &WorkflowList{TypeMeta: in.TypeMeta, ListMeta: *in.ListMeta.DeepCopy()}
	out.Items = each(in.Items, func(in, out *Workflow) { *out = *in.DeepCopy() })
	return out
}

func pointed[T any](in *T) *T {
	if in == nil {
		return nil
	}
	out := *in
	return &out
}

func each[T any](in []T, into func(in, out *T)) []T {
	if in == nil {
		return nil
	}
	out := make([]T, len(in))
	for i := range in {
		into(&in[i], &out[i])
	}
	return out
}
