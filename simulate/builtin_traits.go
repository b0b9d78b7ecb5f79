// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// What sets built-in kinds apart in how they are written. The names are of
// resource and group: "leases.coordination.k8s.io".

var (
	// createdByUpdate come to be when they are PUT and are not there.
	createdByUpdate = []string{
		"endpoints", "events", "events.events.k8s.io", "limitranges", "services", "leases.coordination.k8s.io", "runtimeclasses.node.k8s.io",
		"roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
		"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
	}
	// versionedAlways are updated only by who names the version that was read.
	versionedAlways = []string{
		"leases.coordination.k8s.io", "poddisruptionbudgets.policy", "runtimeclasses.node.k8s.io",
		"podcertificaterequests.certificates.k8s.io", "clustertrustbundles.certificates.k8s.io",
		"storageversionmigrations.storagemigration.k8s.io", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io",
		"csistoragecapacities.storage.k8s.io", "volumeattachments.storage.k8s.io", "customresourcedefinitions.apiextensions.k8s.io",
		"mutatingadmissionpolicies.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io", "validatingadmissionpolicybindings.admissionregistration.k8s.io",
		"apiservices.apiregistration.k8s.io",
	}
	// deletedWhole are answered to their deletion, where others answer a Status.
	deletedWhole = []string{
		"pods", "services", "serviceaccounts", "namespaces", "persistentvolumes", "persistentvolumeclaims", "podtemplates", "resourcequotas",
		"resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io", "resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io",
		"csidrivers.storage.k8s.io", "storageclasses.storage.k8s.io", "volumeattachments.storage.k8s.io", "csinodes.storage.k8s.io",
		"volumeattributesclasses.storage.k8s.io",
	}
	// orphaning leave their dependents when nobody says what becomes of them.
	orphaning = []string{"jobs.batch", "replicationcontrollers"}
	// counted have a generation from their creation on.
	counted = []string{
		"pods", "podtemplates", "replicationcontrollers",
		"daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps", "jobs.batch", "cronjobs.batch",
		"ingresses.networking.k8s.io", "ingressclasses.networking.k8s.io", "networkpolicies.networking.k8s.io",
		"endpointslices.discovery.k8s.io", "poddisruptionbudgets.policy", "horizontalpodautoscalers.autoscaling",
		"resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io", "devicetaintrules.resource.k8s.io",
		"flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "priorityclasses.scheduling.k8s.io",
		"mutatingadmissionpolicies.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io", "validatingadmissionpolicybindings.admissionregistration.k8s.io",
		"customresourcedefinitions.apiextensions.k8s.io",
	}
	// statusWithMain have a status that is taken from creates.
	statusWithMain = []string{"nodes"}
	// statusAlone are those whose status subresource leaves all of metadata.
	statusAlone = []string{
		"podcertificaterequests.certificates.k8s.io", "servicecidrs.networking.k8s.io", "storageversionmigrations.storagemigration.k8s.io",
		"resourceclaims.resource.k8s.io", "devicetaintrules.resource.k8s.io", "volumeattachments.storage.k8s.io", "csinodes.storage.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io",
	}
)

// outdated are kinds of which clients are warned, and how.
var outdated = map[string]string{
	"endpoints":         "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
	"componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
}

func (k *Kind) is(list []string) bool { return slices.Contains(list, k.resource().String()) }

func (k *Kind) createsOnUpdate() bool { return k.is(createdByUpdate) }

// needsVersion reports whether an update has to name the version it is of.
func (k *Kind) needsVersion() bool { return !k.builtin || k.is(versionedAlways) }

func (k *Kind) answersDeleted() bool { return k.is(deletedWhole) }

// resetsStatus reports whether a create loses its status.
func (k *Kind) resetsStatus() bool { return !k.is(statusWithMain) }

// keepsStatus reports whether an update of the object leaves the status.
func (k *Kind) keepsStatus() bool { return true }

// countsFromCreation reports whether a new object has a generation.
func (k *Kind) countsFromCreation(obj *object.Object) bool {
	return !k.builtin && k.resource() != apiServices || k.is(counted)
}

// countsAnnotations reports whether these count for the generation too.
func (k *Kind) countsAnnotations() bool { return k.resource().String() == "deployments.apps" }

// keptByStatus are the fields of metadata that a write of the status leaves.
func (k *Kind) keptByStatus() []string {
	switch {
	case k.resource().String() == "deployments.apps":
		return []string{"labels"}
	case k.resource().String() == "pods":
		return []string{"deletionTimestamp", "ownerReferences"}
	case k.is(statusAlone):
		return []string{"labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp", "generation"}
	}
	return nil
}

// graceful reports whether a deletion waits for somebody to end the object.
func (k *Kind) graceful() bool { return k.resource().String() == "pods" }

// firstStatus is the status of a new object.
func (k *Kind) firstStatus(obj *object.Object) map[string]any {
	switch k.resource().String() {
	case "namespaces":
		return map[string]any{"phase": "Active"}
	case "pods":
		return firstPodStatus(obj)
	case "persistentvolumes":
		return map[string]any{"phase": "Pending", "lastPhaseTransitionTime": jsonvalue.Now().UTC().Format(time.RFC3339)}
	case "persistentvolumeclaims":
		return map[string]any{"phase": "Pending"}
	case "volumeattachments.storage.k8s.io":
		return map[string]any{"attached": false}
	case "services":
		return map[string]any{"loadBalancer": map[string]any{}}
	case "ingresses.networking.k8s.io":
		return map[string]any{"loadBalancer": map[string]any{}}
	case "replicasets.apps", "replicationcontrollers":
		return map[string]any{"replicas": int64(0)}
	case "statefulsets.apps":
		return map[string]any{"replicas": int64(0), "availableReplicas": int64(0)}
	case "daemonsets.apps":
		return map[string]any{"currentNumberScheduled": int64(0), "numberMisscheduled": int64(0), "desiredNumberScheduled": int64(0), "numberReady": int64(0)}
	case definitions.String():
		return map[string]any{"conditions": nil, "acceptedNames": map[string]any{"plural": "", "kind": ""}, "storedVersions": storedVersions(obj, nil)}
	case "poddisruptionbudgets.policy":
		return map[string]any{"disruptionsAllowed": int64(0), "currentHealthy": int64(0), "desiredHealthy": int64(0), "expectedPods": int64(0)}
	case "horizontalpodautoscalers.autoscaling":
		if k.Version == "v2" {
			return map[string]any{"currentMetrics": nil, "desiredReplicas": int64(0)}
		}
		return map[string]any{"currentReplicas": int64(0), "desiredReplicas": int64(0)}
	}
	return map[string]any{}
}

// firstPodStatus is the status of a new Pod.
func firstPodStatus(obj *object.Object) map[string]any {
	status := map[string]any{"phase": "Pending", "qosClass": qualityOf(obj)}
	spec, _ := obj.Fields["spec"].(map[string]any)
	if gates, _ := spec["schedulingGates"].([]any); len(gates) > 0 {
		status["conditions"] = []any{map[string]any{
			"type": string(corev1.PodScheduled), "status": "False", "reason": corev1.PodReasonSchedulingGated,
			"message": "Scheduling is blocked due to non-empty scheduling gates", "lastProbeTime": nil, "lastTransitionTime": jsonvalue.Now().UTC().Format(time.RFC3339),
		}}
	}
	return status
}

// qualityOf is the class that the resources of a Pod's containers give it.
func qualityOf(obj *object.Object) string {
	pod, err := object.TypedOf[corev1.Pod](obj)
	if err != nil {
		return string(corev1.PodQOSBestEffort)
	}
	return string(defaults.PodQuality(pod))
}
