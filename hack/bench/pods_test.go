// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The cluster of the Pods: twenty per Deployment, and about 21 per node when there are
// 20,000.
const (
	podNamespaces  = 200
	podDeployments = 1000
	podNodes       = 952
)

// wholePod is a Pod as in a cluster: spec, status, and managedFields of five writers. Its
// protobuf has 7.4 kB, half of which is managedFields; its JSON has 10.7 kB.
func wholePod(i int) *corev1.Pod {
	deployment := i % podDeployments
	app := fmt.Sprintf("service-%d", deployment)
	set := fmt.Sprintf("%s-%x", app, 0x5d4f8c7b9+deployment)
	begun := metav1.NewTime(time.Unix(1_750_000_000+int64(i), 0))
	yes, no := true, false
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: podName(i), GenerateName: set + "-", Namespace: podNamespace(i), UID: podUID(i), ResourceVersion: strconv.Itoa(i + 1),
			CreationTimestamp: begun,
			Labels: map[string]string{
				"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app + "-production", "app.kubernetes.io/version": "1.24.3",
				"app.kubernetes.io/managed-by": "Helm", "pod-template-hash": set[len(app)+1:], "team": "payments", "tier": "backend",
			},
			Annotations: map[string]string{
				"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "prometheus.io/path": "/metrics",
				"checksum/config":                       fmt.Sprintf("%064x", deployment),
				"kubectl.kubernetes.io/restartedAt":     "2026-02-03T04:05:06Z",
				"cni.projectcalico.org/podIP":           podIP(i) + "/32",
				"cni.projectcalico.org/containerID":     fmt.Sprintf("%064x", i),
				"cluster-autoscaler.kubernetes.io/safe": "true",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, UID: podUID(1_000_000 + deployment), Controller: &yes, BlockOwnerDeletion: &yes,
			}},
			ManagedFields: managedFields(begun),
		},
		Spec: corev1.PodSpec{
			NodeName: podNode(i), ServiceAccountName: app, DeprecatedServiceAccount: app, RestartPolicy: corev1.RestartPolicyAlways,
			DNSPolicy: corev1.DNSClusterFirst, SchedulerName: "default-scheduler", EnableServiceLinks: &yes,
			TerminationGracePeriodSeconds: of(int64(30)), Priority: of(int32(0)), PreemptionPolicy: of(corev1.PreemptLowerPriority),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, FSGroup: of(int64(2000))},
			InitContainers:  []corev1.Container{sideContainer("setup", &no)},
			Containers:      []corev1.Container{mainContainer(app, deployment, &no), sideContainer("proxy", &no)},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: app + "-config"}, DefaultMode: of(int32(420)),
				}}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: fmt.Sprintf("kube-api-access-%05x", i), VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					DefaultMode: of(int32(420)),
					Sources: []corev1.VolumeProjection{
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: of(int64(3607)), Path: "token"}},
						{ConfigMap: &corev1.ConfigMapProjection{
							LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
							Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
						}},
						{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
							{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
						}}},
					},
				}}},
			},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: of(int64(300))},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: of(int64(300))},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, StartTime: &begun, PodIP: podIP(i), PodIPs: []corev1.PodIP{{IP: podIP(i)}},
			HostIP: hostIP(i), HostIPs: []corev1.HostIP{{IP: hostIP(i)}},
		},
	}
	for _, condition := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: begun})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image[:strings.LastIndexByte(c.Image, ':')] + fmt.Sprintf("@sha256:%064x", deployment),
			ContainerID: fmt.Sprintf("containerd://%064x", i), Ready: true, Started: &yes,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: begun}},
		})
	}
	return pod
}

func mainContainer(app string, deployment int, no *bool) corev1.Container {
	c := corev1.Container{
		Name: "main", Image: fmt.Sprintf("registry.example.com/payments/%s:1.24.%d", app, deployment%40), ImagePullPolicy: corev1.PullIfNotPresent,
		Args:                   []string{"--config=/etc/service/config.yaml", "--listen=:8080"},
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}, {Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/service", ReadOnly: true}, {Name: "scratch", MountPath: "/tmp"},
			{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		LivenessProbe: probe("/livez"), ReadinessProbe: probe("/readyz"),
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
	for n := range 10 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SERVICE_SETTING_%d", n), Value: fmt.Sprintf("https://%s.internal.example.com/%d", app, n)})
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}})
	return c
}

func sideContainer(name string, no *bool) corev1.Container {
	return corev1.Container{
		Name: name, Image: "registry.example.com/mesh/proxy:2.11.0", ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		},
		Env:             []corev1.EnvVar{{Name: "PROXY_MODE", Value: "sidecar"}, {Name: "PROXY_LOG_LEVEL", Value: "warning"}},
		VolumeMounts:    []corev1.VolumeMount{{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
}

func probe(path string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds:    10,
		TimeoutSeconds:   1,
		SuccessThreshold: 1,
		FailureThreshold: 3,
	}
}

func managedFields(at metav1.Time) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for _, manager := range []string{"kube-controller-manager", "calico", "kubelet"} {
		var fields strings.Builder
		fields.WriteString(`{"f:metadata":{"f:annotations":{".":{},"f:cni.projectcalico.org/podIP":{}}},"f:spec":{`)
		for n := range 24 {
			fmt.Fprintf(&fields, `"f:field%d-%s":{".":{},"f:value":{}},`, n, manager)
		}
		fields.WriteString(`"f:last":{}}}`)
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields.String()),
		})
	}
	return entries
}

func of[T any](v T) *T { return &v }

func podName(i int) string {
	return fmt.Sprintf("service-%d-%x-%05x", i%podDeployments, 0x5d4f8c7b9+i%podDeployments, i)
}
func podNamespace(i int) string { return "namespace-" + strconv.Itoa(i%podNamespaces) }
func podNode(i int) string      { return fmt.Sprintf("node-%03d.eu-central-1.compute.internal", i%podNodes) }
func podUID(i int) types.UID    { return types.UID(fmt.Sprintf("0b1c5e42-3a1c-4a4b-8a4b-%012x", i)) }
func podIP(i int) string        { return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255) }
func hostIP(i int) string       { return fmt.Sprintf("192.168.%d.%d", i%podNodes>>8, i%podNodes&255) }
func podKey(i int) key          { return key{Namespace: podNamespace(i), Name: podName(i)} }

// readyPods returns n Pods, each with its own metadata and outer struct. Deeper parts,
// which no informer reads, are shared between similar Pods, so a hundred thousand of them
// leave memory for what is measured.
func readyPods(n int) []*corev1.Pod {
	like := wholePod(0)
	like.ManagedFields = nil
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pod := *like
		pod.Name, pod.Namespace, pod.UID, pod.ResourceVersion = podName(i), podNamespace(i), podUID(i), strconv.Itoa(i+1)
		pod.Spec.NodeName = podNode(i)
		pods[i] = &pod
	}
	return pods
}

// changed returns pod in its state at version. It shares strings and maps with the previous
// state, unlike the output of a decoder; what an informer makes of it is not shared.
func changed(pod *corev1.Pod, version int) *corev1.Pod {
	next := *pod
	next.ResourceVersion = strconv.Itoa(version)
	return &next
}
