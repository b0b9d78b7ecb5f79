// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	proxyImage   = "docker.io/istio/proxyv2:1.27.1"
	proxyImageID = "docker.io/istio/proxyv2@sha256:7c9ce5f0b0a54f6ee0d0a8ba0f5e2d4c1a1e0a3e9c3d6a9a5b1e2c4f7d8a6b30"
)

// inject adds what the admission webhook of a service mesh adds: a proxy with its
// variables, volumes and ports, an init container, labels and annotations.
func inject(pod *corev1.Pod, o *owner) {
	_, scraped := pod.Annotations["prometheus.io/scrape"]
	pod.Labels["security.istio.io/tlsMode"] = "istio"
	pod.Labels["service.istio.io/canonical-name"] = o.app
	pod.Labels["service.istio.io/canonical-revision"] = pod.Labels["app.kubernetes.io/version"]
	for key, value := range map[string]string{
		"istio.io/rev": "default",
		"kubectl.kubernetes.io/default-container":      o.app,
		"kubectl.kubernetes.io/default-logs-container": o.app,
		"prometheus.io/path":                           "/stats/prometheus",
		"prometheus.io/port":                           "15020",
		"prometheus.io/scrape":                         "true",
		"sidecar.istio.io/status": `{"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["istio-envoy",` +
			`"istio-data","istio-podinfo","istio-token","istiod-ca-cert"],"imagePullSecrets":null,"revision":"default"}`,
	} {
		pod.Annotations[key] = value
	}
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, redirection())
	pod.Spec.Containers = append(pod.Spec.Containers, proxy(o, scraped))
	pod.Spec.Volumes = append(proxyVolumes(), pod.Spec.Volumes...)
}

// redirection returns the init container that sends the Pod's traffic through the proxy.
func redirection() corev1.Container {
	c := container("istio-init", proxyImage)
	c.Args = []string{"istio-iptables", "-p", "15001", "-z", "15006", "-u", "1337", "-m", "REDIRECT", "-i", "*", "-x", "", "-b", "*", "-d", "15090,15021,15020", "--log_output_level=default:info"}
	c.Resources = proxyResources()
	c.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: of(false), Privileged: of(false), ReadOnlyRootFilesystem: of(false), RunAsGroup: of(int64(0)), RunAsNonRoot: of(false), RunAsUser: of(int64(0)),
		Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}, Drop: []corev1.Capability{"ALL"}},
	}
	return c
}

func proxyResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: quantities("100m", "128Mi"), Limits: quantities("2", "1Gi")}
}

func proxy(o *owner, scraped bool) corev1.Container {
	c := container("istio-proxy", proxyImage)
	c.Args = []string{"proxy", "sidecar", "--domain", "$(POD_NAMESPACE).svc.cluster.local", "--proxyLogLevel=warning",
		"--proxyComponentLogLevel=misc:error", "--log_output_level=default:info"}
	c.Ports = []corev1.ContainerPort{{Name: "http-envoy-prom", ContainerPort: 15090, Protocol: corev1.ProtocolTCP}}
	c.Env = proxyVariables(o, scraped)
	c.Resources = proxyResources()
	c.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: of(false), Privileged: of(false), ReadOnlyRootFilesystem: of(true), RunAsGroup: of(int64(1337)), RunAsNonRoot: of(true), RunAsUser: of(int64(1337)),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	c.ReadinessProbe = proxyProbe()
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: "istiod-ca-cert", MountPath: "/var/run/secrets/istio"},
		{Name: "istio-data", MountPath: "/var/lib/istio/data"},
		{Name: "istio-envoy", MountPath: "/etc/istio/proxy"},
		{Name: "istio-token", MountPath: "/var/run/secrets/tokens"},
		{Name: "istio-podinfo", MountPath: "/etc/istio/pod"},
	}
	return c
}

func proxyProbe() *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt32(15021), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: 15, TimeoutSeconds: 3, SuccessThreshold: 1, FailureThreshold: 4,
	}
}

func proxyVariables(o *owner, scraped bool) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "PILOT_CERT_PROVIDER", Value: "istiod"}, {Name: "CA_ADDR", Value: "istiod.istio-system.svc:15012"},
		fieldVariable("POD_NAME", "metadata.name"), fieldVariable("POD_NAMESPACE", "metadata.namespace"),
		fieldVariable("INSTANCE_IP", "status.podIP"), fieldVariable("SERVICE_ACCOUNT", "spec.serviceAccountName"),
		fieldVariable("HOST_IP", "status.hostIP"),
		resourceVariable("ISTIO_CPU_LIMIT", "limits.cpu"),
		{Name: "ISTIO_META_POD_PORTS", Value: "[\n    {\"name\":\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"}\n]"},
		{Name: "ISTIO_META_APP_CONTAINERS", Value: o.app},
		resourceVariable("GOMEMLIMIT", "limits.memory"), resourceVariable("GOMAXPROCS", "limits.cpu"),
		{Name: "ISTIO_META_CLUSTER_ID", Value: "Kubernetes"},
		fieldVariable("ISTIO_META_NODE_NAME", "spec.nodeName"),
		{Name: "ISTIO_META_INTERCEPTION_MODE", Value: "REDIRECT"},
		{Name: "ISTIO_META_WORKLOAD_NAME", Value: o.app},
		{Name: "ISTIO_META_OWNER", Value: fmt.Sprintf("kubernetes://apis/apps/v1/namespaces/%s/deployments/%s", o.namespace, o.app)},
		{Name: "TRUST_DOMAIN", Value: "cluster.local"},
	}
	if scraped {
		env = append(env, corev1.EnvVar{Name: "ISTIO_PROMETHEUS_ANNOTATIONS", Value: `{"scrape":"true","path":"","port":"9090"}`})
	}
	return env
}

func resourceVariable(name, of string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: of, Divisor: resource.MustParse("0")},
	}}
}

func proxyVolumes() []corev1.Volume {
	empty := func(name string, medium corev1.StorageMedium) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
	}
	field := func(path string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata." + path}}
	}
	return []corev1.Volume{
		empty("istio-envoy", corev1.StorageMediumMemory), empty("istio-data", ""),
		{Name: "istio-podinfo", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			DefaultMode: of(int32(420)), Items: []corev1.DownwardAPIVolumeFile{field("labels"), field("annotations")},
		}}},
		{Name: "istio-token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: of(int32(420)), Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: "istio-ca", ExpirationSeconds: of(int64(43200)), Path: "istio-token",
			}}},
		}}},
		{Name: "istiod-ca-cert", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "istio-ca-root-cert"}, DefaultMode: of(int32(420)),
		}}},
	}
}
