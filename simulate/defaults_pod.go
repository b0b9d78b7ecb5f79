// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func defaultPodSpec(s *corev1.PodSpec) {
	zeroElse(&s.RestartPolicy, corev1.RestartPolicyAlways)
	orElse(&s.TerminationGracePeriodSeconds, podGrace)
	zeroElse(&s.DNSPolicy, corev1.DNSClusterFirst)
	zeroElse(&s.SchedulerName, corev1.DefaultSchedulerName)
	orElse(&s.SecurityContext, corev1.PodSecurityContext{})
	if s.DeprecatedServiceAccount == "" {
		s.DeprecatedServiceAccount = s.ServiceAccountName
	}
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i], s.HostNetwork)
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i], s.HostNetwork)
	}
	for i := range s.EphemeralContainers {
		c := corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		defaultContainer(&c, s.HostNetwork)
		s.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
	}
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i].VolumeSource)
	}
	for i := range s.TopologySpreadConstraints {
		orElse(&s.TopologySpreadConstraints[i].NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor)
		orElse(&s.TopologySpreadConstraints[i].NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore)
	}
}

// defaultRequests lets a running Pod ask for what it is limited to.
func defaultRequests(s *corev1.PodSpec) {
	fill := func(containers []corev1.Container) {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, asked := r.Requests[name]; asked {
					continue
				}
				if r.Requests == nil {
					r.Requests = corev1.ResourceList{}
				}
				r.Requests[name] = limit.DeepCopy()
			}
		}
	}
	fill(s.InitContainers)
	fill(s.Containers)
}

func defaultContainer(c *corev1.Container, hostNetwork bool) {
	zeroElse(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	zeroElse(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = corev1.PullIfNotPresent
		if tag := tagOf(c.Image); tag == "latest" {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	for i := range c.Ports {
		zeroElse(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork {
			zeroElse(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			zeroElse(&from.FieldRef.APIVersion, "v1")
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				defaultHTTPGet(h.HTTPGet)
			}
		}
	}
}

// tagOf is the tag of an image; one without a tag and a digest is the latest.
func tagOf(image string) string {
	if strings.Contains(image, "@") {
		return ""
	}
	last := image[strings.LastIndex(image, "/")+1:]
	if _, tag, ok := strings.Cut(last, ":"); ok {
		return tag
	}
	return "latest"
}

func defaultHTTPGet(h *corev1.HTTPGetAction) {
	if h != nil {
		zeroElse(&h.Path, "/")
		zeroElse(&h.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	zeroElse(&p.TimeoutSeconds, 1)
	zeroElse(&p.PeriodSeconds, 10)
	zeroElse(&p.SuccessThreshold, 1)
	zeroElse(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		orElse(&p.GRPC.Service, "")
	}
}

// volumeMode is that of the files in volumes made of objects.
const volumeMode = 0o644

func defaultVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.Secret != nil {
		orElse(&v.Secret.DefaultMode, volumeMode)
	}
	if v.ConfigMap != nil {
		orElse(&v.ConfigMap.DefaultMode, volumeMode)
	}
	if v.HostPath != nil {
		orElse(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.DownwardAPI != nil {
		orElse(&v.DownwardAPI.DefaultMode, volumeMode)
		for i := range v.DownwardAPI.Items {
			if ref := v.DownwardAPI.Items[i].FieldRef; ref != nil {
				zeroElse(&ref.APIVersion, "v1")
			}
		}
	}
	if v.Projected != nil {
		defaultProjected(v.Projected)
	}
}

// tokenSeconds is how long a projected token is good for.
const tokenSeconds = 3600

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	orElse(&p.DefaultMode, volumeMode)
	for i := range p.Sources {
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			orElse(&token.ExpirationSeconds, tokenSeconds)
		}
		if down := p.Sources[i].DownwardAPI; down != nil {
			for j := range down.Items {
				if ref := down.Items[j].FieldRef; ref != nil {
					zeroElse(&ref.APIVersion, "v1")
				}
			}
		}
	}
}
