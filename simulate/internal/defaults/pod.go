// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// defaultPod sets the defaults of Pods that templates of Pods do not get.
func defaultPod(o *corev1.Pod) {
	defaultPodSpec(&o.Spec)
	defaultRequests(&o.Spec)
	OrElse(&o.Spec.EnableServiceLinks, true)
	if *o.Spec.TerminationGracePeriodSeconds < 0 {
		o.Spec.TerminationGracePeriodSeconds = new(int64(1))
	}
	if o.Spec.HostNetwork {
		for _, containers := range [][]corev1.Container{o.Spec.Containers, o.Spec.InitContainers} {
			for _, c := range containers {
				for i := range c.Ports {
					ZeroElse(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
				}
			}
		}
	}
}

func defaultPodSpec(s *corev1.PodSpec) {
	ZeroElse(&s.RestartPolicy, corev1.RestartPolicyAlways)
	OrElse(&s.TerminationGracePeriodSeconds, PodGrace)
	ZeroElse(&s.DNSPolicy, corev1.DNSClusterFirst)
	ZeroElse(&s.SchedulerName, corev1.DefaultSchedulerName)
	OrElse(&s.SecurityContext, corev1.PodSecurityContext{})
	ZeroElse(&s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		c := corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		defaultContainer(&c)
		s.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
	}
	for i := range s.Volumes {
		defaultPodVolume(&s.Volumes[i].VolumeSource)
	}
}

// defaultRequests sets missing requests to the limits.
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

func defaultContainer(c *corev1.Container) {
	ZeroElse(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	ZeroElse(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	ZeroElse(&c.ImagePullPolicy, pullOf(c.Image))
	for i := range c.Ports {
		ZeroElse(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			ZeroElse(&from.FieldRef.APIVersion, "v1")
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

// pullOf returns the default pull policy of an image.
func pullOf(image string) corev1.PullPolicy {
	if tagOf(image) == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// tagOf returns the tag of an image; "latest" without a tag and a digest.
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
		ZeroElse(&h.Path, "/")
		ZeroElse(&h.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	ZeroElse(&p.TimeoutSeconds, 1)
	ZeroElse(&p.PeriodSeconds, 10)
	ZeroElse(&p.SuccessThreshold, 1)
	ZeroElse(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		OrElse(&p.GRPC.Service, "")
	}
}

// PodGrace is the default termination grace period of a Pod, in seconds.
const PodGrace = 30
