// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

// eventFor tells of a change of the Ready condition, for kubectl describe and
// kubectl get events. before is nil for a new Website.
func eventFor(site *webv1.Website, before, ready *metav1.Condition, now time.Time) *eventsv1.Event {
	kind := corev1.EventTypeNormal
	if before != nil && before.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeWarning // it was served, and is no more as it should be
	}
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: site.Namespace,
			Name:      fmt.Sprintf("%s.%x", site.Name, now.UnixNano()),
		},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: "example.flyball.dev/website",
		ReportingInstance:   "website",
		Action:              "Reconcile",
		Reason:              ready.Reason,
		Note:                ready.Message,
		Type:                kind,
		Regarding: corev1.ObjectReference{
			APIVersion: webv1.GroupVersion.String(), Kind: "Website",
			Namespace: site.Namespace, Name: site.Name, UID: site.UID,
		},
	}
}
