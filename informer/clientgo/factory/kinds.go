// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	discoveryv1beta1 "k8s.io/api/discovery/v1beta1"
	eventsv1 "k8s.io/api/events/v1"
	eventsv1beta1 "k8s.io/api/events/v1beta1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrolv1beta1 "k8s.io/api/flowcontrol/v1beta1"
	flowcontrolv1beta2 "k8s.io/api/flowcontrol/v1beta2"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	nodev1 "k8s.io/api/node/v1"
	nodev1alpha1 "k8s.io/api/node/v1alpha1"
	nodev1beta1 "k8s.io/api/node/v1beta1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1alpha1 "k8s.io/api/rbac/v1alpha1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	storagev1alpha1 "k8s.io/api/storage/v1alpha1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
)

// kinds are the kinds with generated informers in client-go 0.37.
var kinds = []kind{
	ofCluster[*admissionregistrationv1.MutatingAdmissionPolicy](admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies")),
	ofCluster[*admissionregistrationv1.MutatingAdmissionPolicyBinding](admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicybindings")),
	ofCluster[*admissionregistrationv1.MutatingWebhookConfiguration](admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations")),
	ofCluster[*admissionregistrationv1.ValidatingAdmissionPolicy](admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")),
	ofCluster[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings")),
	ofCluster[*admissionregistrationv1.ValidatingWebhookConfiguration](admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")),
	ofCluster[*admissionregistrationv1alpha1.MutatingAdmissionPolicy](admissionregistrationv1alpha1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies")),
	ofCluster[*admissionregistrationv1alpha1.MutatingAdmissionPolicyBinding](admissionregistrationv1alpha1.SchemeGroupVersion.WithResource("mutatingadmissionpolicybindings")),
	ofCluster[*admissionregistrationv1alpha1.ValidatingAdmissionPolicy](admissionregistrationv1alpha1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")),
	ofCluster[*admissionregistrationv1alpha1.ValidatingAdmissionPolicyBinding](admissionregistrationv1alpha1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings")),
	ofCluster[*admissionregistrationv1beta1.MutatingAdmissionPolicy](admissionregistrationv1beta1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies")),
	ofCluster[*admissionregistrationv1beta1.MutatingAdmissionPolicyBinding](admissionregistrationv1beta1.SchemeGroupVersion.WithResource("mutatingadmissionpolicybindings")),
	ofCluster[*admissionregistrationv1beta1.MutatingWebhookConfiguration](admissionregistrationv1beta1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations")),
	ofCluster[*admissionregistrationv1beta1.ValidatingAdmissionPolicy](admissionregistrationv1beta1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")),
	ofCluster[*admissionregistrationv1beta1.ValidatingAdmissionPolicyBinding](admissionregistrationv1beta1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings")),
	ofCluster[*admissionregistrationv1beta1.ValidatingWebhookConfiguration](admissionregistrationv1beta1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")),
	ofCluster[*apiserverinternalv1alpha1.StorageVersion](apiserverinternalv1alpha1.SchemeGroupVersion.WithResource("storageversions")),
	ofNamespace[*appsv1.ControllerRevision](appsv1.SchemeGroupVersion.WithResource("controllerrevisions")),
	ofNamespace[*appsv1.DaemonSet](appsv1.SchemeGroupVersion.WithResource("daemonsets")),
	ofNamespace[*appsv1.Deployment](appsv1.SchemeGroupVersion.WithResource("deployments")),
	ofNamespace[*appsv1.ReplicaSet](appsv1.SchemeGroupVersion.WithResource("replicasets")),
	ofNamespace[*appsv1.StatefulSet](appsv1.SchemeGroupVersion.WithResource("statefulsets")),
	ofNamespace[*appsv1beta1.ControllerRevision](appsv1beta1.SchemeGroupVersion.WithResource("controllerrevisions")),
	ofNamespace[*appsv1beta1.Deployment](appsv1beta1.SchemeGroupVersion.WithResource("deployments")),
	ofNamespace[*appsv1beta1.StatefulSet](appsv1beta1.SchemeGroupVersion.WithResource("statefulsets")),
	ofNamespace[*appsv1beta2.ControllerRevision](appsv1beta2.SchemeGroupVersion.WithResource("controllerrevisions")),
	ofNamespace[*appsv1beta2.DaemonSet](appsv1beta2.SchemeGroupVersion.WithResource("daemonsets")),
	ofNamespace[*appsv1beta2.Deployment](appsv1beta2.SchemeGroupVersion.WithResource("deployments")),
	ofNamespace[*appsv1beta2.ReplicaSet](appsv1beta2.SchemeGroupVersion.WithResource("replicasets")),
	ofNamespace[*appsv1beta2.StatefulSet](appsv1beta2.SchemeGroupVersion.WithResource("statefulsets")),
	ofNamespace[*autoscalingv1.HorizontalPodAutoscaler](autoscalingv1.SchemeGroupVersion.WithResource("horizontalpodautoscalers")),
	ofNamespace[*autoscalingv2.HorizontalPodAutoscaler](autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers")),
	ofNamespace[*batchv1.CronJob](batchv1.SchemeGroupVersion.WithResource("cronjobs")),
	ofNamespace[*batchv1.Job](batchv1.SchemeGroupVersion.WithResource("jobs")),
	ofNamespace[*batchv1beta1.CronJob](batchv1beta1.SchemeGroupVersion.WithResource("cronjobs")),
	ofCluster[*certificatesv1.CertificateSigningRequest](certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")),
	ofCluster[*certificatesv1.ClusterTrustBundle](certificatesv1.SchemeGroupVersion.WithResource("clustertrustbundles")),
	ofNamespace[*certificatesv1.PodCertificateRequest](certificatesv1.SchemeGroupVersion.WithResource("podcertificaterequests")),
	ofCluster[*certificatesv1alpha1.ClusterTrustBundle](certificatesv1alpha1.SchemeGroupVersion.WithResource("clustertrustbundles")),
	ofCluster[*certificatesv1beta1.CertificateSigningRequest](certificatesv1beta1.SchemeGroupVersion.WithResource("certificatesigningrequests")),
	ofCluster[*certificatesv1beta1.ClusterTrustBundle](certificatesv1beta1.SchemeGroupVersion.WithResource("clustertrustbundles")),
	ofNamespace[*certificatesv1beta1.PodCertificateRequest](certificatesv1beta1.SchemeGroupVersion.WithResource("podcertificaterequests")),
	ofNamespace[*coordinationv1.Lease](coordinationv1.SchemeGroupVersion.WithResource("leases")),
	ofNamespace[*coordinationv1alpha2.LeaseCandidate](coordinationv1alpha2.SchemeGroupVersion.WithResource("leasecandidates")),
	ofNamespace[*coordinationv1beta1.LeaseCandidate](coordinationv1beta1.SchemeGroupVersion.WithResource("leasecandidates")),
	ofNamespace[*coordinationv1beta1.Lease](coordinationv1beta1.SchemeGroupVersion.WithResource("leases")),
	ofCluster[*corev1.ComponentStatus](corev1.SchemeGroupVersion.WithResource("componentstatuses")),
	ofNamespace[*corev1.ConfigMap](corev1.SchemeGroupVersion.WithResource("configmaps")),
	//lint:ignore SA1019 client-go has an informer of it, and controllers use it
	ofNamespace[*corev1.Endpoints](corev1.SchemeGroupVersion.WithResource("endpoints")),
	ofNamespace[*corev1.Event](corev1.SchemeGroupVersion.WithResource("events")),
	ofNamespace[*corev1.LimitRange](corev1.SchemeGroupVersion.WithResource("limitranges")),
	ofCluster[*corev1.Namespace](corev1.SchemeGroupVersion.WithResource("namespaces")),
	ofCluster[*corev1.Node](corev1.SchemeGroupVersion.WithResource("nodes")),
	ofNamespace[*corev1.PersistentVolumeClaim](corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")),
	ofCluster[*corev1.PersistentVolume](corev1.SchemeGroupVersion.WithResource("persistentvolumes")),
	ofNamespace[*corev1.Pod](corev1.SchemeGroupVersion.WithResource("pods")),
	ofNamespace[*corev1.PodTemplate](corev1.SchemeGroupVersion.WithResource("podtemplates")),
	ofNamespace[*corev1.ReplicationController](corev1.SchemeGroupVersion.WithResource("replicationcontrollers")),
	ofNamespace[*corev1.ResourceQuota](corev1.SchemeGroupVersion.WithResource("resourcequotas")),
	ofNamespace[*corev1.Secret](corev1.SchemeGroupVersion.WithResource("secrets")),
	ofNamespace[*corev1.ServiceAccount](corev1.SchemeGroupVersion.WithResource("serviceaccounts")),
	ofNamespace[*corev1.Service](corev1.SchemeGroupVersion.WithResource("services")),
	ofNamespace[*discoveryv1.EndpointSlice](discoveryv1.SchemeGroupVersion.WithResource("endpointslices")),
	ofNamespace[*discoveryv1beta1.EndpointSlice](discoveryv1beta1.SchemeGroupVersion.WithResource("endpointslices")),
	ofNamespace[*eventsv1.Event](eventsv1.SchemeGroupVersion.WithResource("events")),
	ofNamespace[*eventsv1beta1.Event](eventsv1beta1.SchemeGroupVersion.WithResource("events")),
	ofNamespace[*extensionsv1beta1.DaemonSet](extensionsv1beta1.SchemeGroupVersion.WithResource("daemonsets")),
	ofNamespace[*extensionsv1beta1.Deployment](extensionsv1beta1.SchemeGroupVersion.WithResource("deployments")),
	ofNamespace[*extensionsv1beta1.Ingress](extensionsv1beta1.SchemeGroupVersion.WithResource("ingresses")),
	ofNamespace[*extensionsv1beta1.NetworkPolicy](extensionsv1beta1.SchemeGroupVersion.WithResource("networkpolicies")),
	ofNamespace[*extensionsv1beta1.ReplicaSet](extensionsv1beta1.SchemeGroupVersion.WithResource("replicasets")),
	ofCluster[*flowcontrolv1.FlowSchema](flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas")),
	ofCluster[*flowcontrolv1.PriorityLevelConfiguration](flowcontrolv1.SchemeGroupVersion.WithResource("prioritylevelconfigurations")),
	ofCluster[*flowcontrolv1beta1.FlowSchema](flowcontrolv1beta1.SchemeGroupVersion.WithResource("flowschemas")),
	ofCluster[*flowcontrolv1beta1.PriorityLevelConfiguration](flowcontrolv1beta1.SchemeGroupVersion.WithResource("prioritylevelconfigurations")),
	ofCluster[*flowcontrolv1beta2.FlowSchema](flowcontrolv1beta2.SchemeGroupVersion.WithResource("flowschemas")),
	ofCluster[*flowcontrolv1beta2.PriorityLevelConfiguration](flowcontrolv1beta2.SchemeGroupVersion.WithResource("prioritylevelconfigurations")),
	ofCluster[*flowcontrolv1beta3.FlowSchema](flowcontrolv1beta3.SchemeGroupVersion.WithResource("flowschemas")),
	ofCluster[*flowcontrolv1beta3.PriorityLevelConfiguration](flowcontrolv1beta3.SchemeGroupVersion.WithResource("prioritylevelconfigurations")),
	ofNamespace[*lifecyclev1alpha1.EvictionRequest](lifecyclev1alpha1.SchemeGroupVersion.WithResource("evictionrequests")),
	ofNamespace[*lifecyclev1alpha1.Eviction](lifecyclev1alpha1.SchemeGroupVersion.WithResource("evictions")),
	ofCluster[*networkingv1.IngressClass](networkingv1.SchemeGroupVersion.WithResource("ingressclasses")),
	ofNamespace[*networkingv1.Ingress](networkingv1.SchemeGroupVersion.WithResource("ingresses")),
	ofCluster[*networkingv1.IPAddress](networkingv1.SchemeGroupVersion.WithResource("ipaddresses")),
	ofNamespace[*networkingv1.NetworkPolicy](networkingv1.SchemeGroupVersion.WithResource("networkpolicies")),
	ofCluster[*networkingv1.ServiceCIDR](networkingv1.SchemeGroupVersion.WithResource("servicecidrs")),
	ofCluster[*networkingv1beta1.IngressClass](networkingv1beta1.SchemeGroupVersion.WithResource("ingressclasses")),
	ofNamespace[*networkingv1beta1.Ingress](networkingv1beta1.SchemeGroupVersion.WithResource("ingresses")),
	ofCluster[*networkingv1beta1.IPAddress](networkingv1beta1.SchemeGroupVersion.WithResource("ipaddresses")),
	ofCluster[*networkingv1beta1.ServiceCIDR](networkingv1beta1.SchemeGroupVersion.WithResource("servicecidrs")),
	ofCluster[*nodev1.RuntimeClass](nodev1.SchemeGroupVersion.WithResource("runtimeclasses")),
	ofCluster[*nodev1alpha1.RuntimeClass](nodev1alpha1.SchemeGroupVersion.WithResource("runtimeclasses")),
	ofCluster[*nodev1beta1.RuntimeClass](nodev1beta1.SchemeGroupVersion.WithResource("runtimeclasses")),
	ofNamespace[*policyv1.PodDisruptionBudget](policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")),
	ofNamespace[*policyv1beta1.PodDisruptionBudget](policyv1beta1.SchemeGroupVersion.WithResource("poddisruptionbudgets")),
	ofCluster[*rbacv1.ClusterRoleBinding](rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")),
	ofCluster[*rbacv1.ClusterRole](rbacv1.SchemeGroupVersion.WithResource("clusterroles")),
	ofNamespace[*rbacv1.RoleBinding](rbacv1.SchemeGroupVersion.WithResource("rolebindings")),
	ofNamespace[*rbacv1.Role](rbacv1.SchemeGroupVersion.WithResource("roles")),
	ofCluster[*rbacv1alpha1.ClusterRoleBinding](rbacv1alpha1.SchemeGroupVersion.WithResource("clusterrolebindings")),
	ofCluster[*rbacv1alpha1.ClusterRole](rbacv1alpha1.SchemeGroupVersion.WithResource("clusterroles")),
	ofNamespace[*rbacv1alpha1.RoleBinding](rbacv1alpha1.SchemeGroupVersion.WithResource("rolebindings")),
	ofNamespace[*rbacv1alpha1.Role](rbacv1alpha1.SchemeGroupVersion.WithResource("roles")),
	ofCluster[*rbacv1beta1.ClusterRoleBinding](rbacv1beta1.SchemeGroupVersion.WithResource("clusterrolebindings")),
	ofCluster[*rbacv1beta1.ClusterRole](rbacv1beta1.SchemeGroupVersion.WithResource("clusterroles")),
	ofNamespace[*rbacv1beta1.RoleBinding](rbacv1beta1.SchemeGroupVersion.WithResource("rolebindings")),
	ofNamespace[*rbacv1beta1.Role](rbacv1beta1.SchemeGroupVersion.WithResource("roles")),
	ofCluster[*resourcev1.DeviceClass](resourcev1.SchemeGroupVersion.WithResource("deviceclasses")),
	ofCluster[*resourcev1.DeviceTaintRule](resourcev1.SchemeGroupVersion.WithResource("devicetaintrules")),
	ofNamespace[*resourcev1.ResourceClaim](resourcev1.SchemeGroupVersion.WithResource("resourceclaims")),
	ofNamespace[*resourcev1.ResourceClaimTemplate](resourcev1.SchemeGroupVersion.WithResource("resourceclaimtemplates")),
	ofCluster[*resourcev1.ResourceSlice](resourcev1.SchemeGroupVersion.WithResource("resourceslices")),
	ofCluster[*resourcev1alpha3.DeviceTaintRule](resourcev1alpha3.SchemeGroupVersion.WithResource("devicetaintrules")),
	ofCluster[*resourcev1alpha3.ResourcePoolStatusRequest](resourcev1alpha3.SchemeGroupVersion.WithResource("resourcepoolstatusrequests")),
	ofCluster[*resourcev1beta1.DeviceClass](resourcev1beta1.SchemeGroupVersion.WithResource("deviceclasses")),
	ofNamespace[*resourcev1beta1.ResourceClaim](resourcev1beta1.SchemeGroupVersion.WithResource("resourceclaims")),
	ofNamespace[*resourcev1beta1.ResourceClaimTemplate](resourcev1beta1.SchemeGroupVersion.WithResource("resourceclaimtemplates")),
	ofCluster[*resourcev1beta1.ResourceSlice](resourcev1beta1.SchemeGroupVersion.WithResource("resourceslices")),
	ofCluster[*resourcev1beta2.DeviceClass](resourcev1beta2.SchemeGroupVersion.WithResource("deviceclasses")),
	ofCluster[*resourcev1beta2.DeviceTaintRule](resourcev1beta2.SchemeGroupVersion.WithResource("devicetaintrules")),
	ofNamespace[*resourcev1beta2.ResourceClaim](resourcev1beta2.SchemeGroupVersion.WithResource("resourceclaims")),
	ofNamespace[*resourcev1beta2.ResourceClaimTemplate](resourcev1beta2.SchemeGroupVersion.WithResource("resourceclaimtemplates")),
	ofCluster[*resourcev1beta2.ResourceSlice](resourcev1beta2.SchemeGroupVersion.WithResource("resourceslices")),
	ofCluster[*schedulingv1.PriorityClass](schedulingv1.SchemeGroupVersion.WithResource("priorityclasses")),
	ofNamespace[*schedulingv1alpha3.CompositePodGroup](schedulingv1alpha3.SchemeGroupVersion.WithResource("compositepodgroups")),
	ofNamespace[*schedulingv1alpha3.PodGroup](schedulingv1alpha3.SchemeGroupVersion.WithResource("podgroups")),
	ofNamespace[*schedulingv1alpha3.Workload](schedulingv1alpha3.SchemeGroupVersion.WithResource("workloads")),
	ofNamespace[*schedulingv1beta1.PodGroup](schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups")),
	ofCluster[*schedulingv1beta1.PriorityClass](schedulingv1beta1.SchemeGroupVersion.WithResource("priorityclasses")),
	ofNamespace[*schedulingv1beta1.Workload](schedulingv1beta1.SchemeGroupVersion.WithResource("workloads")),
	ofCluster[*storagemigrationv1.StorageVersionMigration](storagemigrationv1.SchemeGroupVersion.WithResource("storageversionmigrations")),
	ofCluster[*storagemigrationv1beta1.StorageVersionMigration](storagemigrationv1beta1.SchemeGroupVersion.WithResource("storageversionmigrations")),
	ofCluster[*storagev1.CSIDriver](storagev1.SchemeGroupVersion.WithResource("csidrivers")),
	ofCluster[*storagev1.CSINode](storagev1.SchemeGroupVersion.WithResource("csinodes")),
	ofNamespace[*storagev1.CSIStorageCapacity](storagev1.SchemeGroupVersion.WithResource("csistoragecapacities")),
	ofCluster[*storagev1.StorageClass](storagev1.SchemeGroupVersion.WithResource("storageclasses")),
	ofCluster[*storagev1.VolumeAttachment](storagev1.SchemeGroupVersion.WithResource("volumeattachments")),
	ofCluster[*storagev1.VolumeAttributesClass](storagev1.SchemeGroupVersion.WithResource("volumeattributesclasses")),
	ofNamespace[*storagev1alpha1.CSIStorageCapacity](storagev1alpha1.SchemeGroupVersion.WithResource("csistoragecapacities")),
	ofCluster[*storagev1alpha1.VolumeAttachment](storagev1alpha1.SchemeGroupVersion.WithResource("volumeattachments")),
	ofCluster[*storagev1alpha1.VolumeAttributesClass](storagev1alpha1.SchemeGroupVersion.WithResource("volumeattributesclasses")),
	ofCluster[*storagev1beta1.CSIDriver](storagev1beta1.SchemeGroupVersion.WithResource("csidrivers")),
	ofCluster[*storagev1beta1.CSINode](storagev1beta1.SchemeGroupVersion.WithResource("csinodes")),
	ofNamespace[*storagev1beta1.CSIStorageCapacity](storagev1beta1.SchemeGroupVersion.WithResource("csistoragecapacities")),
	ofCluster[*storagev1beta1.StorageClass](storagev1beta1.SchemeGroupVersion.WithResource("storageclasses")),
	ofCluster[*storagev1beta1.VolumeAttachment](storagev1beta1.SchemeGroupVersion.WithResource("volumeattachments")),
	ofCluster[*storagev1beta1.VolumeAttributesClass](storagev1beta1.SchemeGroupVersion.WithResource("volumeattributesclasses")),
}
