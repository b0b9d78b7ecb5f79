// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 a server shows what old clients store

package encode

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func corePrinters() printers {
	events := heads("Last Seen|Type|Reason|Object|+Subobject|+Source|Message|+First Seen|+Count|+Name")
	return printers{
		"v1 ConfigMap": printed(heads("Name|Data|Age"), func(o *corev1.ConfigMap) []any {
			return []any{o.Name, int64(len(o.Data) + len(o.BinaryData)), age(o.CreationTimestamp)}
		}),
		"v1 Secret": printed(heads("Name|Type|Data|Age"), func(o *corev1.Secret) []any {
			return []any{o.Name, string(o.Type), int64(len(o.Data)), age(o.CreationTimestamp)}
		}),
		"v1 Namespace": printed(heads("Name|Status|Age"), func(o *corev1.Namespace) []any {
			return []any{o.Name, string(o.Status.Phase), age(o.CreationTimestamp)}
		}),
		"v1 ServiceAccount": printed(heads("Name|Age"), func(o *corev1.ServiceAccount) []any {
			return []any{o.Name, age(o.CreationTimestamp)}
		}),
		"v1 Node":                printed(heads("Name|Status|Roles|Age|Version|+Internal-IP|+External-IP|+OS-Image|+Kernel-Version|+Container-Runtime"), nodeCells),
		"v1 Event":               printed(events, eventCells),
		"events.k8s.io/v1 Event": printed(events, func(o *eventsv1.Event) []any { return eventCells(coreEvent(o)) }),
	}
}

func nodeCells(o *corev1.Node) []any {
	status := "Unknown"
	for _, c := range o.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if status = "NotReady"; c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if o.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	var roles []string
	for name, value := range o.Labels {
		if role, ok := strings.CutPrefix(name, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		} else if name == "kubernetes.io/role" && value != "" {
			roles = append(roles, value)
		}
	}
	slices.Sort(roles)
	info := o.Status.NodeInfo
	kernel := or(info.KernelVersion, cellUnknown)
	if info.Architecture != "" {
		kernel += " (" + info.Architecture + ")"
	}
	return []any{
		o.Name, status, or(strings.Join(slices.Compact(roles), ","), cellNone), age(o.CreationTimestamp), info.KubeletVersion,
		addressOf(o, corev1.NodeInternalIP), addressOf(o, corev1.NodeExternalIP), or(info.OSImage, cellUnknown), kernel, or(info.ContainerRuntimeVersion, cellUnknown),
	}
}

func addressOf(o *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range o.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return cellNone
}

// coreEvent converts an event of the newer group to the older one.
func coreEvent(o *eventsv1.Event) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta: o.ObjectMeta, InvolvedObject: o.Regarding, Reason: o.Reason, Message: o.Note, Source: o.DeprecatedSource,
		FirstTimestamp: o.DeprecatedFirstTimestamp, LastTimestamp: o.DeprecatedLastTimestamp, Count: o.DeprecatedCount,
		Type: o.Type, EventTime: o.EventTime, ReportingController: o.ReportingController, ReportingInstance: o.ReportingInstance,
	}
	if o.Series != nil {
		e.Series = &corev1.EventSeries{Count: o.Series.Count, LastObservedTime: o.Series.LastObservedTime}
	}
	return e
}

func eventCells(o *corev1.Event) []any {
	first := age(o.FirstTimestamp)
	if o.FirstTimestamp.IsZero() {
		first = age(metav1.Time{Time: o.EventTime.Time})
	}
	last, count := age(o.LastTimestamp), o.Count
	if o.LastTimestamp.IsZero() {
		last = first
	}
	switch {
	case o.Series != nil:
		last, count = age(metav1.Time{Time: o.Series.LastObservedTime.Time}), o.Series.Count
	case count == 0:
		count = 1
	}
	about := strings.ToLower(o.InvolvedObject.Kind)
	if o.InvolvedObject.Name != "" {
		about += "/" + o.InvolvedObject.Name
	}
	source, host := or(o.Source.Component, o.ReportingController), or(o.Source.Host, o.ReportingInstance)
	if host != "" {
		source += ", " + host
	}
	return []any{last, o.Type, o.Reason, about, o.InvolvedObject.FieldPath, source, strings.TrimSpace(o.Message), first, int64(count), o.Name}
}

// some returns the first of many, with the number of the others.
func some(all []string) string {
	if len(all) <= listedAtMost {
		return strings.Join(all, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(all[:listedAtMost], ","), len(all)-listedAtMost)
}
