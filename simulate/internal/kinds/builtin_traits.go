// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// How writes of built-in kinds differ. The names are those of resource and group:
// "leases.coordination.k8s.io".

var (
	// createdByUpdate are created by a PUT if they do not exist.
	createdByUpdate = []string{
		"endpoints", "events", "events.events.k8s.io", "limitranges", "services", "leases.coordination.k8s.io", "runtimeclasses.node.k8s.io",
		"roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
		"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
	}
	// versionedAlways require a resourceVersion in an update.
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
	// deletedWhole are returned by their deletion, where others return a Status.
	deletedWhole = []string{
		"pods", "services", "serviceaccounts", "namespaces", "persistentvolumes", "persistentvolumeclaims", "podtemplates", "resourcequotas",
		"resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io", "resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io",
		"csidrivers.storage.k8s.io", "storageclasses.storage.k8s.io", "volumeattachments.storage.k8s.io", "csinodes.storage.k8s.io",
		"volumeattributesclasses.storage.k8s.io",
	}
	// Orphaning are the kinds whose dependents are orphaned by default.
	Orphaning = []string{"jobs.batch", "replicationcontrollers"}
	// counted have a generation from their creation.
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
	// statusWithMain accept a status in a create.
	statusWithMain = []string{"nodes"}
	// statusAlone are the kinds whose status subresource leaves all of metadata.
	statusAlone = []string{
		"podcertificaterequests.certificates.k8s.io", "servicecidrs.networking.k8s.io", "storageversionmigrations.storagemigration.k8s.io",
		"resourceclaims.resource.k8s.io", "devicetaintrules.resource.k8s.io", "volumeattachments.storage.k8s.io", "csinodes.storage.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io",
	}
)

// Outdated are the deprecated kinds, with the warning for clients.
var Outdated = map[string]string{
	"endpoints":         "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
	"componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
}

func (k *Kind) Is(list []string) bool { return slices.Contains(list, k.GroupResource().String()) }

func (k *Kind) CreatesOnUpdate() bool { return k.Is(createdByUpdate) }

// NeedsVersion reports whether an update requires a resourceVersion.
func (k *Kind) NeedsVersion() bool { return !k.Builtin || k.Is(versionedAlways) }

func (k *Kind) AnswersDeleted() bool { return k.Is(deletedWhole) }

// ResetsStatus reports whether a create drops the status.
func (k *Kind) ResetsStatus() bool { return !k.Is(statusWithMain) }

// KeepsStatus reports whether an update of the object leaves the status.
func (k *Kind) KeepsStatus() bool { return true }

// CountsFromCreation reports whether a new object has a generation.
func (k *Kind) CountsFromCreation(obj *object.Object) bool {
	return !k.Builtin && k.GroupResource() != APIServices || k.Is(counted)
}

// CountsAnnotations reports whether a change of annotations increments the generation too.
func (k *Kind) CountsAnnotations() bool { return k.GroupResource().String() == "deployments.apps" }

// KeptByStatus returns the fields of metadata that a write of the status leaves.
func (k *Kind) KeptByStatus() []string {
	switch {
	case k.GroupResource().String() == "deployments.apps":
		return []string{"labels"}
	case k.GroupResource().String() == "pods":
		return []string{"deletionTimestamp", "ownerReferences"}
	case k.Is(statusAlone):
		return []string{"labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp", "generation"}
	}
	return nil
}

// Graceful reports whether a deletion waits until an actor has ended the object.
func (k *Kind) Graceful() bool { return k.GroupResource().String() == "pods" }

// FirstStatus returns the status of a new object.
func (k *Kind) FirstStatus(obj *object.Object) map[string]any {
	switch k.GroupResource().String() {
	case "namespaces":
		return map[string]any{"phase": "Active"}
	case "pods":
		return firstPodStatus(obj)
	case "persistentvolumes":
		return map[string]any{"phase": "Pending", "lastPhaseTransitionTime": object.Now().UTC().Format(time.RFC3339)}
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
	case Definitions.String():
		return map[string]any{"conditions": nil, "acceptedNames": map[string]any{"plural": "", "kind": ""}, "storedVersions": StoredVersions(obj, nil)}
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

// firstPodStatus returns the status of a new Pod.
func firstPodStatus(obj *object.Object) map[string]any {
	status := map[string]any{"phase": "Pending", "qosClass": qualityOf(obj)}
	spec, _ := obj.Fields["spec"].(map[string]any)
	if gates, _ := spec["schedulingGates"].([]any); len(gates) > 0 {
		status["conditions"] = []any{map[string]any{
			"type": string(corev1.PodScheduled), "status": "False", "reason": corev1.PodReasonSchedulingGated,
			"message": "Scheduling is blocked due to non-empty scheduling gates", "lastProbeTime": nil, "lastTransitionTime": object.Now().UTC().Format(time.RFC3339),
		}}
	}
	return status
}

// qualityOf returns the QoS class that follows from the resources of a Pod's containers.
func qualityOf(obj *object.Object) string {
	pod, err := object.TypedOf[corev1.Pod](obj)
	if err != nil {
		return string(corev1.PodQOSBestEffort)
	}
	return string(defaults.PodQuality(pod))
}

// APIServices have no Go type here.
var APIServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
