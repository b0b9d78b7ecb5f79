// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 a server shows what old clients store

package encode

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
)

const (
	containersDoc = "Names of each container in the template."
	imagesDoc     = "Images referenced by each container in the template."
)

// columnDocs returns the descriptions of the columns of built-in kinds, by kind and column,
// mostly the documentation of the field that a cell shows.
func columnDocs() map[string]map[string]string {
	all := coreDocs()
	maps.Copy(all, workloadDocs())
	maps.Copy(all, otherDocs())
	return all
}

// doc returns the documentation of a field of a Go type.
func doc(of interface{ SwaggerDoc() map[string]string }, field string) string {
	return of.SwaggerDoc()[field]
}

// coreDocs has the core group, and Events of both groups.
func coreDocs() map[string]map[string]string {
	events := map[string]string{
		"Last Seen":  doc(corev1.Event{}, "lastTimestamp"),
		"Type":       doc(corev1.Event{}, "type"),
		"Reason":     doc(corev1.Event{}, "reason"),
		"Object":     doc(corev1.Event{}, "involvedObject"),
		"Subobject":  doc(corev1.ObjectReference{}, "fieldPath"),
		"Source":     doc(corev1.Event{}, "source"),
		"Message":    doc(corev1.Event{}, "message"),
		"First Seen": doc(corev1.Event{}, "firstTimestamp"),
		"Count":      doc(corev1.Event{}, "count"),
	}
	return map[string]map[string]string{
		"v1 Pod": {
			"Ready":           "The aggregate readiness state of this pod for accepting traffic.",
			"Status":          "The aggregate status of the containers in this pod.",
			"Restarts":        "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.",
			"IP":              doc(corev1.PodStatus{}, "podIP"),
			"Node":            doc(corev1.PodSpec{}, "nodeName"),
			"Nominated Node":  doc(corev1.PodStatus{}, "nominatedNodeName"),
			"Readiness Gates": doc(corev1.PodSpec{}, "readinessGates"),
		},
		"v1 ConfigMap": {
			"Data": doc(corev1.ConfigMap{}, "data"),
		},
		"v1 Secret": {
			"Type": doc(corev1.Secret{}, "type"),
			"Data": doc(corev1.Secret{}, "data"),
		},
		"v1 Event": events,
		"v1 Service": {
			"Type":        doc(corev1.ServiceSpec{}, "type"),
			"Cluster-IP":  doc(corev1.ServiceSpec{}, "clusterIP"),
			"External-IP": doc(corev1.ServiceSpec{}, "externalIPs"),
			"Port(s)":     doc(corev1.ServiceSpec{}, "ports"),
			"Selector":    doc(corev1.ServiceSpec{}, "selector"),
		},
		"v1 Endpoints": {
			"Endpoints": doc(corev1.Endpoints{}, "subsets"),
		},
		"v1 PersistentVolumeClaim": {
			"Status":                doc(corev1.PersistentVolumeClaimStatus{}, "phase"),
			"Volume":                doc(corev1.PersistentVolumeClaimSpec{}, "volumeName"),
			"Capacity":              doc(corev1.PersistentVolumeClaimStatus{}, "capacity"),
			"Access Modes":          doc(corev1.PersistentVolumeClaimStatus{}, "accessModes"),
			"StorageClass":          "StorageClass of the pvc",
			"VolumeAttributesClass": "VolumeAttributesClass of the pvc",
			"VolumeMode":            doc(corev1.PersistentVolumeClaimSpec{}, "volumeMode"),
		},
		"v1 ReplicationController": {
			"Desired":    doc(corev1.ReplicationControllerSpec{}, "replicas"),
			"Current":    doc(corev1.ReplicationControllerStatus{}, "replicas"),
			"Ready":      doc(corev1.ReplicationControllerStatus{}, "readyReplicas"),
			"Containers": containersDoc,
			"Images":     imagesDoc,
			"Selector":   doc(corev1.ReplicationControllerSpec{}, "selector"),
		},
		"v1 Namespace": {
			"Status": "The status of the namespace",
		},
		"v1 Node": {
			"Status":            "The status of the node",
			"Roles":             "The roles of the node",
			"Version":           doc(corev1.NodeSystemInfo{}, "kubeletVersion"),
			"Internal-IP":       doc(corev1.NodeStatus{}, "addresses"),
			"External-IP":       doc(corev1.NodeStatus{}, "addresses"),
			"OS-Image":          doc(corev1.NodeSystemInfo{}, "osImage"),
			"Kernel-Version":    doc(corev1.NodeSystemInfo{}, "kernelVersion"),
			"Container-Runtime": doc(corev1.NodeSystemInfo{}, "containerRuntimeVersion"),
		},
		"v1 PersistentVolume": {
			"Capacity":              doc(corev1.PersistentVolumeSpec{}, "capacity"),
			"Access Modes":          doc(corev1.PersistentVolumeSpec{}, "accessModes"),
			"Reclaim Policy":        doc(corev1.PersistentVolumeSpec{}, "persistentVolumeReclaimPolicy"),
			"Status":                doc(corev1.PersistentVolumeStatus{}, "phase"),
			"Claim":                 doc(corev1.PersistentVolumeSpec{}, "claimRef"),
			"StorageClass":          "StorageClass of the pv",
			"VolumeAttributesClass": "VolumeAttributesClass of the pv",
			"Reason":                doc(corev1.PersistentVolumeStatus{}, "reason"),
			"VolumeMode":            doc(corev1.PersistentVolumeSpec{}, "volumeMode"),
		},
		"events.k8s.io/v1 Event": events,
	}
}

// workloadDocs has the kinds that run Pods.
func workloadDocs() map[string]map[string]string {
	return map[string]map[string]string{
		"apps/v1 ReplicaSet": {
			"Desired":    doc(appsv1.ReplicaSetSpec{}, "replicas"),
			"Current":    doc(appsv1.ReplicaSetStatus{}, "replicas"),
			"Ready":      doc(appsv1.ReplicaSetStatus{}, "readyReplicas"),
			"Containers": containersDoc,
			"Images":     imagesDoc,
			"Selector":   doc(appsv1.ReplicaSetSpec{}, "selector"),
		},
		"apps/v1 Deployment": {
			"Ready":      "Number of the pod with ready state",
			"Up-to-date": doc(appsv1.DeploymentStatus{}, "updatedReplicas"),
			"Available":  doc(appsv1.DeploymentStatus{}, "availableReplicas"),
			"Containers": containersDoc,
			"Images":     imagesDoc,
			"Selector":   doc(appsv1.DeploymentSpec{}, "selector"),
		},
		"apps/v1 StatefulSet": {
			"Ready":      "Number of the pod with ready state",
			"Containers": containersDoc,
			"Images":     imagesDoc,
		},
		"apps/v1 DaemonSet": {
			"Desired":       doc(appsv1.DaemonSetStatus{}, "desiredNumberScheduled"),
			"Current":       doc(appsv1.DaemonSetStatus{}, "currentNumberScheduled"),
			"Ready":         doc(appsv1.DaemonSetStatus{}, "numberReady"),
			"Up-to-date":    doc(appsv1.DaemonSetStatus{}, "updatedNumberScheduled"),
			"Available":     doc(appsv1.DaemonSetStatus{}, "numberAvailable"),
			"Node Selector": doc(corev1.PodSpec{}, "nodeSelector"),
			"Containers":    containersDoc,
			"Images":        imagesDoc,
			"Selector":      doc(appsv1.DaemonSetSpec{}, "selector"),
		},
		"apps/v1 ControllerRevision": {
			"Controller": "Controller of the object",
			"Revision":   doc(appsv1.ControllerRevision{}, "revision"),
		},
		"batch/v1 Job": {
			"Status":      "Status of the job.",
			"Completions": doc(batchv1.JobStatus{}, "succeeded"),
			"Duration":    "Time required to complete the job.",
			"Containers":  containersDoc,
			"Images":      imagesDoc,
			"Selector":    doc(batchv1.JobSpec{}, "selector"),
		},
		"batch/v1 CronJob": {
			"Schedule":      doc(batchv1.CronJobSpec{}, "schedule"),
			"Timezone":      doc(batchv1.CronJobSpec{}, "timeZone"),
			"Suspend":       doc(batchv1.CronJobSpec{}, "suspend"),
			"Active":        doc(batchv1.CronJobStatus{}, "active"),
			"Last Schedule": doc(batchv1.CronJobStatus{}, "lastScheduleTime"),
			"Containers":    containersDoc,
			"Images":        imagesDoc,
			"Selector":      doc(batchv1.JobSpec{}, "selector"),
		},
	}
}

// otherDocs has all other groups. Both versions of autoscalers share theirs.
func otherDocs() map[string]map[string]string {
	scaler := map[string]string{
		"Reference": doc(autoscalingv2.HorizontalPodAutoscalerSpec{}, "scaleTargetRef"),
		"Targets":   doc(autoscalingv2.HorizontalPodAutoscalerSpec{}, "metrics"),
		"MinPods":   doc(autoscalingv2.HorizontalPodAutoscalerSpec{}, "minReplicas"),
		"MaxPods":   doc(autoscalingv2.HorizontalPodAutoscalerSpec{}, "maxReplicas"),
		"Replicas":  doc(autoscalingv2.HorizontalPodAutoscalerStatus{}, "currentReplicas"),
	}
	const hooks = "Webhooks indicates the number of webhooks registered in this configuration"
	return map[string]map[string]string{
		"discovery.k8s.io/v1 EndpointSlice": {
			"AddressType": doc(discoveryv1.EndpointSlice{}, "addressType"),
			"Ports":       doc(discoveryv1.EndpointSlice{}, "ports"),
			"Endpoints":   doc(discoveryv1.EndpointSlice{}, "endpoints"),
		},
		"networking.k8s.io/v1 Ingress": {
			"Class":   "The name of the IngressClass resource that should be used for additional configuration",
			"Hosts":   "Hosts that incoming requests are matched against before the ingress rule",
			"Address": "Address is a list containing ingress points for the load-balancer",
			"Ports":   "Ports of TLS configurations that open",
		},
		"networking.k8s.io/v1 NetworkPolicy": {
			"Pod-Selector": doc(networkingv1.NetworkPolicySpec{}, "podSelector"),
		},
		"networking.k8s.io/v1 IngressClass": {
			"Controller": "Controller that is responsible for handling this class",
			"Parameters": "A reference to a resource with additional parameters",
		},
		"rbac.authorization.k8s.io/v1 RoleBinding": {
			"Role":            "roleRef can reference a Role in the current namespace or a ClusterRole in the global namespace. If the RoleRef cannot be resolved, the Authorizer must return an error.",
			"Users":           "Users in the roleBinding",
			"Groups":          "Groups in the roleBinding",
			"ServiceAccounts": "ServiceAccounts in the roleBinding",
		},
		"rbac.authorization.k8s.io/v1 ClusterRoleBinding": {
			"Role":            "roleRef can only reference a ClusterRole in the global namespace. If the RoleRef cannot be resolved, the Authorizer must return an error.",
			"Users":           "Users in the clusterRoleBinding",
			"Groups":          "Groups in the clusterRoleBinding",
			"ServiceAccounts": "ServiceAccounts in the clusterRoleBinding",
		},
		"coordination.k8s.io/v1 Lease": {
			"Holder": doc(coordinationv1.LeaseSpec{}, "holderIdentity"),
		},
		"policy/v1 PodDisruptionBudget": {
			"Min Available":       "The minimum number of pods that must be available.",
			"Max Unavailable":     "The maximum number of pods that may be unavailable.",
			"Allowed Disruptions": "Calculated number of pods that may be disrupted at this time.",
		},
		"scheduling.k8s.io/v1 PriorityClass": {
			"Value":            doc(schedulingv1.PriorityClass{}, "value"),
			"Global-Default":   doc(schedulingv1.PriorityClass{}, "globalDefault"),
			"PreemptionPolicy": doc(schedulingv1.PriorityClass{}, "preemptionPolicy"),
		},
		"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration": {
			"Webhooks": hooks,
		},
		"admissionregistration.k8s.io/v1 MutatingWebhookConfiguration": {
			"Webhooks": hooks,
		},
		"autoscaling/v2 HorizontalPodAutoscaler": scaler,
		"autoscaling/v1 HorizontalPodAutoscaler": scaler,
		"storage.k8s.io/v1 StorageClass": {
			"Provisioner":          doc(storagev1.StorageClass{}, "provisioner"),
			"ReclaimPolicy":        doc(storagev1.StorageClass{}, "reclaimPolicy"),
			"VolumeBindingMode":    doc(storagev1.StorageClass{}, "volumeBindingMode"),
			"AllowVolumeExpansion": doc(storagev1.StorageClass{}, "allowVolumeExpansion"),
		},
	}
}
