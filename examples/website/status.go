// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

const (
	conditionReady = "Ready"
	// Reasons of a Website whose children are applied.
	deploying       = "Deploying"
	replicasMissing = "ReplicasMissing"
)

// statusOf returns the status of site, whose Deployment is d (nil: it does not exist yet).
// It keeps unchanged parts of site's status, so if nothing differs nothing is written.
func statusOf(site *webv1.Website, d *appsv1.Deployment, now time.Time) webv1.WebsiteStatus {
	status := site.DeepCopyObject().(*webv1.Website).Status
	status.ObservedGeneration = site.Generation
	status.URL = urlOf(site)
	status.Selector = labels.SelectorFromSet(labelsOf(site)).String()
	status.ReadyReplicas = 0
	if d != nil {
		status.ReadyReplicas = d.Status.ReadyReplicas
	}
	reconcile.ConditionsOf(site, &status.Conditions, now).Set(readyOf(site, d, status.ReadyReplicas))
	return status
}

// failedStatusOf returns the status of site, whose children could not be applied because of
// err: all but the condition stays as it was.
func failedStatusOf(site *webv1.Website, err error, now time.Time) webv1.WebsiteStatus {
	status := kube.Copy(site).Status
	reconcile.ConditionsOf(site, &status.Conditions, now).Failed(conditionReady, err)
	return status
}

func readyOf(site *webv1.Website, d *appsv1.Deployment, ready int32) metav1.Condition {
	want := replicasOf(site)
	switch {
	case d == nil || d.Status.ObservedGeneration < d.Generation:
		return metav1.Condition{Type: conditionReady, Status: metav1.ConditionFalse, Reason: deploying,
			Message: "the Deployment has not been taken up yet"}
	case ready < want || d.Status.UpdatedReplicas < want:
		return metav1.Condition{Type: conditionReady, Status: metav1.ConditionFalse, Reason: replicasMissing,
			Message: fmt.Sprintf("%d of %d replicas serve the page", min(ready, d.Status.UpdatedReplicas), want)}
	}
	return metav1.Condition{Type: conditionReady, Status: metav1.ConditionTrue, Reason: "Serving",
		Message: fmt.Sprintf("%d of %d replicas serve the page", ready, want)}
}

// eventType returns the type of the event for a change of the Ready condition from before;
// nil: the Website is new.
func eventType(before, after *metav1.Condition) string {
	switch {
	case before != nil && before.Status == metav1.ConditionTrue: // it was served, and no longer is as it should be
		return corev1.EventTypeWarning
	case after.Status == metav1.ConditionFalse && after.Reason != deploying && after.Reason != replicasMissing:
		return corev1.EventTypeWarning // a child could not be applied
	}
	return corev1.EventTypeNormal
}

func urlOf(site *webv1.Website) string {
	if site.Spec.Host != "" {
		return "http://" + site.Spec.Host + "/"
	}
	return fmt.Sprintf("http://%s.%s.svc/", site.Name, site.Namespace)
}
