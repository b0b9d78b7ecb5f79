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
	{resource: admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies"), like: &admissionregistrationv1.MutatingAdmissionPolicy{}, cluster: true},
	{resource: admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicybindings"), like: &admissionregistrationv1.MutatingAdmissionPolicyBinding{}, cluster: true},
	{resource: admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"), like: &admissionregistrationv1.MutatingWebhookConfiguration{}, cluster: true},
	{resource: admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"), like: &admissionregistrationv1.ValidatingAdmissionPolicy{}, cluster: true},
	{resource: admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"), like: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, cluster: true},
	{resource: admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations"), like: &admissionregistrationv1.ValidatingWebhookConfiguration{}, cluster: true},
	{resource: admissionregistrationv1alpha1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies"), like: &admissionregistrationv1alpha1.MutatingAdmissionPolicy{}, cluster: true},
	{resource: admissionregistrationv1alpha1.SchemeGroupVersion.WithResource("mutatingadmissionpolicybindings"), like: &admissionregistrationv1alpha1.MutatingAdmissionPolicyBinding{}, cluster: true},
	{resource: admissionregistrationv1alpha1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"), like: &admissionregistrationv1alpha1.ValidatingAdmissionPolicy{}, cluster: true},
	{resource: admissionregistrationv1alpha1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"), like: &admissionregistrationv1alpha1.ValidatingAdmissionPolicyBinding{}, cluster: true},
	{resource: admissionregistrationv1beta1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies"), like: &admissionregistrationv1beta1.MutatingAdmissionPolicy{}, cluster: true},
	{resource: admissionregistrationv1beta1.SchemeGroupVersion.WithResource("mutatingadmissionpolicybindings"), like: &admissionregistrationv1beta1.MutatingAdmissionPolicyBinding{}, cluster: true},
	{resource: admissionregistrationv1beta1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"), like: &admissionregistrationv1beta1.MutatingWebhookConfiguration{}, cluster: true},
	{resource: admissionregistrationv1beta1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"), like: &admissionregistrationv1beta1.ValidatingAdmissionPolicy{}, cluster: true},
	{resource: admissionregistrationv1beta1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"), like: &admissionregistrationv1beta1.ValidatingAdmissionPolicyBinding{}, cluster: true},
	{resource: admissionregistrationv1beta1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations"), like: &admissionregistrationv1beta1.ValidatingWebhookConfiguration{}, cluster: true},
	{resource: apiserverinternalv1alpha1.SchemeGroupVersion.WithResource("storageversions"), like: &apiserverinternalv1alpha1.StorageVersion{}, cluster: true},
	{resource: appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), like: &appsv1.ControllerRevision{}},
	{resource: appsv1.SchemeGroupVersion.WithResource("daemonsets"), like: &appsv1.DaemonSet{}},
	{resource: appsv1.SchemeGroupVersion.WithResource("deployments"), like: &appsv1.Deployment{}},
	{resource: appsv1.SchemeGroupVersion.WithResource("replicasets"), like: &appsv1.ReplicaSet{}},
	{resource: appsv1.SchemeGroupVersion.WithResource("statefulsets"), like: &appsv1.StatefulSet{}},
	{resource: appsv1beta1.SchemeGroupVersion.WithResource("controllerrevisions"), like: &appsv1beta1.ControllerRevision{}},
	{resource: appsv1beta1.SchemeGroupVersion.WithResource("deployments"), like: &appsv1beta1.Deployment{}},
	{resource: appsv1beta1.SchemeGroupVersion.WithResource("statefulsets"), like: &appsv1beta1.StatefulSet{}},
	{resource: appsv1beta2.SchemeGroupVersion.WithResource("controllerrevisions"), like: &appsv1beta2.ControllerRevision{}},
	{resource: appsv1beta2.SchemeGroupVersion.WithResource("daemonsets"), like: &appsv1beta2.DaemonSet{}},
	{resource: appsv1beta2.SchemeGroupVersion.WithResource("deployments"), like: &appsv1beta2.Deployment{}},
	{resource: appsv1beta2.SchemeGroupVersion.WithResource("replicasets"), like: &appsv1beta2.ReplicaSet{}},
	{resource: appsv1beta2.SchemeGroupVersion.WithResource("statefulsets"), like: &appsv1beta2.StatefulSet{}},
	{resource: autoscalingv1.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), like: &autoscalingv1.HorizontalPodAutoscaler{}},
	{resource: autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), like: &autoscalingv2.HorizontalPodAutoscaler{}},
	{resource: batchv1.SchemeGroupVersion.WithResource("cronjobs"), like: &batchv1.CronJob{}},
	{resource: batchv1.SchemeGroupVersion.WithResource("jobs"), like: &batchv1.Job{}},
	{resource: batchv1beta1.SchemeGroupVersion.WithResource("cronjobs"), like: &batchv1beta1.CronJob{}},
	{resource: certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), like: &certificatesv1.CertificateSigningRequest{}, cluster: true},
	{resource: certificatesv1.SchemeGroupVersion.WithResource("clustertrustbundles"), like: &certificatesv1.ClusterTrustBundle{}, cluster: true},
	{resource: certificatesv1.SchemeGroupVersion.WithResource("podcertificaterequests"), like: &certificatesv1.PodCertificateRequest{}},
	{resource: certificatesv1alpha1.SchemeGroupVersion.WithResource("clustertrustbundles"), like: &certificatesv1alpha1.ClusterTrustBundle{}, cluster: true},
	{resource: certificatesv1beta1.SchemeGroupVersion.WithResource("certificatesigningrequests"), like: &certificatesv1beta1.CertificateSigningRequest{}, cluster: true},
	{resource: certificatesv1beta1.SchemeGroupVersion.WithResource("clustertrustbundles"), like: &certificatesv1beta1.ClusterTrustBundle{}, cluster: true},
	{resource: certificatesv1beta1.SchemeGroupVersion.WithResource("podcertificaterequests"), like: &certificatesv1beta1.PodCertificateRequest{}},
	{resource: coordinationv1.SchemeGroupVersion.WithResource("leases"), like: &coordinationv1.Lease{}},
	{resource: coordinationv1alpha2.SchemeGroupVersion.WithResource("leasecandidates"), like: &coordinationv1alpha2.LeaseCandidate{}},
	{resource: coordinationv1beta1.SchemeGroupVersion.WithResource("leasecandidates"), like: &coordinationv1beta1.LeaseCandidate{}},
	{resource: coordinationv1beta1.SchemeGroupVersion.WithResource("leases"), like: &coordinationv1beta1.Lease{}},
	{resource: corev1.SchemeGroupVersion.WithResource("componentstatuses"), like: &corev1.ComponentStatus{}, cluster: true},
	{resource: corev1.SchemeGroupVersion.WithResource("configmaps"), like: &corev1.ConfigMap{}},
	//lint:ignore SA1019 client-go has an informer of it, and controllers use it
	{resource: corev1.SchemeGroupVersion.WithResource("endpoints"), like: &corev1.Endpoints{}},
	{resource: corev1.SchemeGroupVersion.WithResource("events"), like: &corev1.Event{}},
	{resource: corev1.SchemeGroupVersion.WithResource("limitranges"), like: &corev1.LimitRange{}},
	{resource: corev1.SchemeGroupVersion.WithResource("namespaces"), like: &corev1.Namespace{}, cluster: true},
	{resource: corev1.SchemeGroupVersion.WithResource("nodes"), like: &corev1.Node{}, cluster: true},
	{resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), like: &corev1.PersistentVolumeClaim{}},
	{resource: corev1.SchemeGroupVersion.WithResource("persistentvolumes"), like: &corev1.PersistentVolume{}, cluster: true},
	{resource: corev1.SchemeGroupVersion.WithResource("pods"), like: &corev1.Pod{}},
	{resource: corev1.SchemeGroupVersion.WithResource("podtemplates"), like: &corev1.PodTemplate{}},
	{resource: corev1.SchemeGroupVersion.WithResource("replicationcontrollers"), like: &corev1.ReplicationController{}},
	{resource: corev1.SchemeGroupVersion.WithResource("resourcequotas"), like: &corev1.ResourceQuota{}},
	{resource: corev1.SchemeGroupVersion.WithResource("secrets"), like: &corev1.Secret{}},
	{resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts"), like: &corev1.ServiceAccount{}},
	{resource: corev1.SchemeGroupVersion.WithResource("services"), like: &corev1.Service{}},
	{resource: discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), like: &discoveryv1.EndpointSlice{}},
	{resource: discoveryv1beta1.SchemeGroupVersion.WithResource("endpointslices"), like: &discoveryv1beta1.EndpointSlice{}},
	{resource: eventsv1.SchemeGroupVersion.WithResource("events"), like: &eventsv1.Event{}},
	{resource: eventsv1beta1.SchemeGroupVersion.WithResource("events"), like: &eventsv1beta1.Event{}},
	{resource: extensionsv1beta1.SchemeGroupVersion.WithResource("daemonsets"), like: &extensionsv1beta1.DaemonSet{}},
	{resource: extensionsv1beta1.SchemeGroupVersion.WithResource("deployments"), like: &extensionsv1beta1.Deployment{}},
	{resource: extensionsv1beta1.SchemeGroupVersion.WithResource("ingresses"), like: &extensionsv1beta1.Ingress{}},
	{resource: extensionsv1beta1.SchemeGroupVersion.WithResource("networkpolicies"), like: &extensionsv1beta1.NetworkPolicy{}},
	{resource: extensionsv1beta1.SchemeGroupVersion.WithResource("replicasets"), like: &extensionsv1beta1.ReplicaSet{}},
	{resource: flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas"), like: &flowcontrolv1.FlowSchema{}, cluster: true},
	{resource: flowcontrolv1.SchemeGroupVersion.WithResource("prioritylevelconfigurations"), like: &flowcontrolv1.PriorityLevelConfiguration{}, cluster: true},
	{resource: flowcontrolv1beta1.SchemeGroupVersion.WithResource("flowschemas"), like: &flowcontrolv1beta1.FlowSchema{}, cluster: true},
	{resource: flowcontrolv1beta1.SchemeGroupVersion.WithResource("prioritylevelconfigurations"), like: &flowcontrolv1beta1.PriorityLevelConfiguration{}, cluster: true},
	{resource: flowcontrolv1beta2.SchemeGroupVersion.WithResource("flowschemas"), like: &flowcontrolv1beta2.FlowSchema{}, cluster: true},
	{resource: flowcontrolv1beta2.SchemeGroupVersion.WithResource("prioritylevelconfigurations"), like: &flowcontrolv1beta2.PriorityLevelConfiguration{}, cluster: true},
	{resource: flowcontrolv1beta3.SchemeGroupVersion.WithResource("flowschemas"), like: &flowcontrolv1beta3.FlowSchema{}, cluster: true},
	{resource: flowcontrolv1beta3.SchemeGroupVersion.WithResource("prioritylevelconfigurations"), like: &flowcontrolv1beta3.PriorityLevelConfiguration{}, cluster: true},
	{resource: lifecyclev1alpha1.SchemeGroupVersion.WithResource("evictionrequests"), like: &lifecyclev1alpha1.EvictionRequest{}},
	{resource: lifecyclev1alpha1.SchemeGroupVersion.WithResource("evictions"), like: &lifecyclev1alpha1.Eviction{}},
	{resource: networkingv1.SchemeGroupVersion.WithResource("ingressclasses"), like: &networkingv1.IngressClass{}, cluster: true},
	{resource: networkingv1.SchemeGroupVersion.WithResource("ingresses"), like: &networkingv1.Ingress{}},
	{resource: networkingv1.SchemeGroupVersion.WithResource("ipaddresses"), like: &networkingv1.IPAddress{}, cluster: true},
	{resource: networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), like: &networkingv1.NetworkPolicy{}},
	{resource: networkingv1.SchemeGroupVersion.WithResource("servicecidrs"), like: &networkingv1.ServiceCIDR{}, cluster: true},
	{resource: networkingv1beta1.SchemeGroupVersion.WithResource("ingressclasses"), like: &networkingv1beta1.IngressClass{}, cluster: true},
	{resource: networkingv1beta1.SchemeGroupVersion.WithResource("ingresses"), like: &networkingv1beta1.Ingress{}},
	{resource: networkingv1beta1.SchemeGroupVersion.WithResource("ipaddresses"), like: &networkingv1beta1.IPAddress{}, cluster: true},
	{resource: networkingv1beta1.SchemeGroupVersion.WithResource("servicecidrs"), like: &networkingv1beta1.ServiceCIDR{}, cluster: true},
	{resource: nodev1.SchemeGroupVersion.WithResource("runtimeclasses"), like: &nodev1.RuntimeClass{}, cluster: true},
	{resource: nodev1alpha1.SchemeGroupVersion.WithResource("runtimeclasses"), like: &nodev1alpha1.RuntimeClass{}, cluster: true},
	{resource: nodev1beta1.SchemeGroupVersion.WithResource("runtimeclasses"), like: &nodev1beta1.RuntimeClass{}, cluster: true},
	{resource: policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), like: &policyv1.PodDisruptionBudget{}},
	{resource: policyv1beta1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), like: &policyv1beta1.PodDisruptionBudget{}},
	{resource: rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), like: &rbacv1.ClusterRoleBinding{}, cluster: true},
	{resource: rbacv1.SchemeGroupVersion.WithResource("clusterroles"), like: &rbacv1.ClusterRole{}, cluster: true},
	{resource: rbacv1.SchemeGroupVersion.WithResource("rolebindings"), like: &rbacv1.RoleBinding{}},
	{resource: rbacv1.SchemeGroupVersion.WithResource("roles"), like: &rbacv1.Role{}},
	{resource: rbacv1alpha1.SchemeGroupVersion.WithResource("clusterrolebindings"), like: &rbacv1alpha1.ClusterRoleBinding{}, cluster: true},
	{resource: rbacv1alpha1.SchemeGroupVersion.WithResource("clusterroles"), like: &rbacv1alpha1.ClusterRole{}, cluster: true},
	{resource: rbacv1alpha1.SchemeGroupVersion.WithResource("rolebindings"), like: &rbacv1alpha1.RoleBinding{}},
	{resource: rbacv1alpha1.SchemeGroupVersion.WithResource("roles"), like: &rbacv1alpha1.Role{}},
	{resource: rbacv1beta1.SchemeGroupVersion.WithResource("clusterrolebindings"), like: &rbacv1beta1.ClusterRoleBinding{}, cluster: true},
	{resource: rbacv1beta1.SchemeGroupVersion.WithResource("clusterroles"), like: &rbacv1beta1.ClusterRole{}, cluster: true},
	{resource: rbacv1beta1.SchemeGroupVersion.WithResource("rolebindings"), like: &rbacv1beta1.RoleBinding{}},
	{resource: rbacv1beta1.SchemeGroupVersion.WithResource("roles"), like: &rbacv1beta1.Role{}},
	{resource: resourcev1.SchemeGroupVersion.WithResource("deviceclasses"), like: &resourcev1.DeviceClass{}, cluster: true},
	{resource: resourcev1.SchemeGroupVersion.WithResource("devicetaintrules"), like: &resourcev1.DeviceTaintRule{}, cluster: true},
	{resource: resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), like: &resourcev1.ResourceClaim{}},
	{resource: resourcev1.SchemeGroupVersion.WithResource("resourceclaimtemplates"), like: &resourcev1.ResourceClaimTemplate{}},
	{resource: resourcev1.SchemeGroupVersion.WithResource("resourceslices"), like: &resourcev1.ResourceSlice{}, cluster: true},
	{resource: resourcev1alpha3.SchemeGroupVersion.WithResource("devicetaintrules"), like: &resourcev1alpha3.DeviceTaintRule{}, cluster: true},
	{resource: resourcev1alpha3.SchemeGroupVersion.WithResource("resourcepoolstatusrequests"), like: &resourcev1alpha3.ResourcePoolStatusRequest{}, cluster: true},
	{resource: resourcev1beta1.SchemeGroupVersion.WithResource("deviceclasses"), like: &resourcev1beta1.DeviceClass{}, cluster: true},
	{resource: resourcev1beta1.SchemeGroupVersion.WithResource("resourceclaims"), like: &resourcev1beta1.ResourceClaim{}},
	{resource: resourcev1beta1.SchemeGroupVersion.WithResource("resourceclaimtemplates"), like: &resourcev1beta1.ResourceClaimTemplate{}},
	{resource: resourcev1beta1.SchemeGroupVersion.WithResource("resourceslices"), like: &resourcev1beta1.ResourceSlice{}, cluster: true},
	{resource: resourcev1beta2.SchemeGroupVersion.WithResource("deviceclasses"), like: &resourcev1beta2.DeviceClass{}, cluster: true},
	{resource: resourcev1beta2.SchemeGroupVersion.WithResource("devicetaintrules"), like: &resourcev1beta2.DeviceTaintRule{}, cluster: true},
	{resource: resourcev1beta2.SchemeGroupVersion.WithResource("resourceclaims"), like: &resourcev1beta2.ResourceClaim{}},
	{resource: resourcev1beta2.SchemeGroupVersion.WithResource("resourceclaimtemplates"), like: &resourcev1beta2.ResourceClaimTemplate{}},
	{resource: resourcev1beta2.SchemeGroupVersion.WithResource("resourceslices"), like: &resourcev1beta2.ResourceSlice{}, cluster: true},
	{resource: schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"), like: &schedulingv1.PriorityClass{}, cluster: true},
	{resource: schedulingv1alpha3.SchemeGroupVersion.WithResource("compositepodgroups"), like: &schedulingv1alpha3.CompositePodGroup{}},
	{resource: schedulingv1alpha3.SchemeGroupVersion.WithResource("podgroups"), like: &schedulingv1alpha3.PodGroup{}},
	{resource: schedulingv1alpha3.SchemeGroupVersion.WithResource("workloads"), like: &schedulingv1alpha3.Workload{}},
	{resource: schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups"), like: &schedulingv1beta1.PodGroup{}},
	{resource: schedulingv1beta1.SchemeGroupVersion.WithResource("priorityclasses"), like: &schedulingv1beta1.PriorityClass{}, cluster: true},
	{resource: schedulingv1beta1.SchemeGroupVersion.WithResource("workloads"), like: &schedulingv1beta1.Workload{}},
	{resource: storagemigrationv1.SchemeGroupVersion.WithResource("storageversionmigrations"), like: &storagemigrationv1.StorageVersionMigration{}, cluster: true},
	{resource: storagemigrationv1beta1.SchemeGroupVersion.WithResource("storageversionmigrations"), like: &storagemigrationv1beta1.StorageVersionMigration{}, cluster: true},
	{resource: storagev1.SchemeGroupVersion.WithResource("csidrivers"), like: &storagev1.CSIDriver{}, cluster: true},
	{resource: storagev1.SchemeGroupVersion.WithResource("csinodes"), like: &storagev1.CSINode{}, cluster: true},
	{resource: storagev1.SchemeGroupVersion.WithResource("csistoragecapacities"), like: &storagev1.CSIStorageCapacity{}},
	{resource: storagev1.SchemeGroupVersion.WithResource("storageclasses"), like: &storagev1.StorageClass{}, cluster: true},
	{resource: storagev1.SchemeGroupVersion.WithResource("volumeattachments"), like: &storagev1.VolumeAttachment{}, cluster: true},
	{resource: storagev1.SchemeGroupVersion.WithResource("volumeattributesclasses"), like: &storagev1.VolumeAttributesClass{}, cluster: true},
	{resource: storagev1alpha1.SchemeGroupVersion.WithResource("csistoragecapacities"), like: &storagev1alpha1.CSIStorageCapacity{}},
	{resource: storagev1alpha1.SchemeGroupVersion.WithResource("volumeattachments"), like: &storagev1alpha1.VolumeAttachment{}, cluster: true},
	{resource: storagev1alpha1.SchemeGroupVersion.WithResource("volumeattributesclasses"), like: &storagev1alpha1.VolumeAttributesClass{}, cluster: true},
	{resource: storagev1beta1.SchemeGroupVersion.WithResource("csidrivers"), like: &storagev1beta1.CSIDriver{}, cluster: true},
	{resource: storagev1beta1.SchemeGroupVersion.WithResource("csinodes"), like: &storagev1beta1.CSINode{}, cluster: true},
	{resource: storagev1beta1.SchemeGroupVersion.WithResource("csistoragecapacities"), like: &storagev1beta1.CSIStorageCapacity{}},
	{resource: storagev1beta1.SchemeGroupVersion.WithResource("storageclasses"), like: &storagev1beta1.StorageClass{}, cluster: true},
	{resource: storagev1beta1.SchemeGroupVersion.WithResource("volumeattachments"), like: &storagev1beta1.VolumeAttachment{}, cluster: true},
	{resource: storagev1beta1.SchemeGroupVersion.WithResource("volumeattributesclasses"), like: &storagev1beta1.VolumeAttributesClass{}, cluster: true},
}
