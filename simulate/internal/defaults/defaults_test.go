// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package defaults_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
)

func TestSet_FillsWhatIsNotSet(t *testing.T) {
	given := &corev1.Service{Spec: corev1.ServiceSpec{SessionAffinity: corev1.ServiceAffinityClientIP, Ports: []corev1.ServicePort{{Port: 80}, {Port: 53, Protocol: corev1.ProtocolUDP}}}}
	defaults.Set(given)
	spec := given.Spec
	if spec.Type != corev1.ServiceTypeClusterIP || spec.Ports[0].Protocol != corev1.ProtocolTCP || spec.Ports[0].TargetPort.IntVal != 80 || spec.InternalTrafficPolicy == nil {
		t.Errorf("got %+v, want a type, a protocol, a target and a policy", spec)
	}
	if spec.SessionAffinity != corev1.ServiceAffinityClientIP || spec.Ports[1].Protocol != corev1.ProtocolUDP {
		t.Errorf("got %+v, want what was set before", spec)
	}
	again := given.DeepCopy()
	if defaults.Set(again); again.String() != given.String() {
		t.Errorf("defaults change an object that has them:\n%v\n%v", given, again)
	}
}

func TestPodQuality_OfRequestsAndLimits(t *testing.T) {
	of := func(cpu, memory string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if text != "" {
				out[name] = resource.MustParse(text)
			}
		}
		return out
	}
	type needs = corev1.ResourceRequirements
	for _, c := range []struct {
		name string
		each []needs
		want corev1.PodQOSClass
	}{
		{"nothing", []needs{{}}, corev1.PodQOSBestEffort},
		{"zeros", []needs{{Requests: of("0", "0")}}, corev1.PodQOSBestEffort},
		{"limits", []needs{{Limits: of("1", "1Gi")}}, corev1.PodQOSGuaranteed},
		{"the same of both", []needs{{Limits: of("1", "1Gi"), Requests: of("1000m", "1Gi")}}, corev1.PodQOSGuaranteed},
		{"less than the limit", []needs{{Limits: of("1", "1Gi"), Requests: of("1", "1Mi")}}, corev1.PodQOSBurstable},
		{"a limit of one", []needs{{Limits: of("1", "")}}, corev1.PodQOSBurstable},
		{"a container without", []needs{{Limits: of("1", "1Gi")}, {}}, corev1.PodQOSBurstable},
	} {
		pod := &corev1.Pod{}
		for _, r := range c.each {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Resources: r})
		}
		if got := defaults.PodQuality(pod); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
