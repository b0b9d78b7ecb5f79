// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/resource"
)

// Service is a kind of the usual size.
type Service struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServiceSpec    `json:"spec"`
	Status DatabaseStatus `json:"status,omitempty"`
}

type ServiceSpec struct {
	Replicas   *int32            `json:"replicas,omitempty"`
	Class      *string           `json:"class,omitempty"`
	Args       []string          `json:"args,omitempty"`
	Ports      []Port            `json:"ports,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Backup     *Backup           `json:"backup,omitempty"`
}

type Backup struct {
	Schedule string   `json:"schedule"`
	Targets  []string `json:"targets,omitempty"`
}

var services = resource.Define[Service](version)

func (s *Service) DeepCopyObject() runtime.Object { return services.DeepCopy(s) }

// written copies like the code of deepcopy-gen.
func (s *Service) written() *Service {
	out := new(Service)
	*out = *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if s.Spec.Replicas != nil {
		out.Spec.Replicas = new(int32)
		*out.Spec.Replicas = *s.Spec.Replicas
	}
	if s.Spec.Class != nil {
		out.Spec.Class = new(string)
		*out.Spec.Class = *s.Spec.Class
	}
	if s.Spec.Args != nil {
		out.Spec.Args = make([]string, len(s.Spec.Args))
		copy(out.Spec.Args, s.Spec.Args)
	}
	if s.Spec.Ports != nil {
		out.Spec.Ports = make([]Port, len(s.Spec.Ports))
		for i := range s.Spec.Ports {
			in, out := &s.Spec.Ports[i], &out.Spec.Ports[i]
			*out = *in
			if in.Labels != nil {
				out.Labels = make(map[string]string, len(in.Labels))
				for k, v := range in.Labels {
					out.Labels[k] = v
				}
			}
		}
	}
	if s.Spec.Parameters != nil {
		out.Spec.Parameters = make(map[string]string, len(s.Spec.Parameters))
		for k, v := range s.Spec.Parameters {
			out.Spec.Parameters[k] = v
		}
	}
	if s.Spec.Backup != nil {
		out.Spec.Backup = new(Backup)
		*out.Spec.Backup = *s.Spec.Backup
		if s.Spec.Backup.Targets != nil {
			out.Spec.Backup.Targets = make([]string, len(s.Spec.Backup.Targets))
			copy(out.Spec.Backup.Targets, s.Spec.Backup.Targets)
		}
	}
	if s.Status.Since != nil {
		out.Status.Since = s.Status.Since.DeepCopy()
	}
	if s.Status.Conditions != nil {
		out.Status.Conditions = make([]metav1.Condition, len(s.Status.Conditions))
		for i := range s.Status.Conditions {
			s.Status.Conditions[i].DeepCopyInto(&out.Status.Conditions[i])
		}
	}
	return out
}

// BenchmarkDeepCopy copies one object by its plan, and by code like that which
// deepcopy-gen writes.
func BenchmarkDeepCopy(b *testing.B) {
	from := full()
	s := &Service{
		TypeMeta: from.TypeMeta, ObjectMeta: from.ObjectMeta, Status: from.Status,
		Spec: ServiceSpec{
			Replicas: from.Spec.Replicas, Class: from.Spec.Class, Args: from.Spec.Args, Ports: from.Spec.Ports,
			Parameters: from.Spec.Parameters, Backup: &Backup{Schedule: "@daily", Targets: []string{"a", "b"}},
		},
	}
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			services.DeepCopy(s)
		}
	})
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.written()
		}
	})
}
