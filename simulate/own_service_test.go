// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"testing"

	"github.com/flyball-dev/flyball/simulate/internal/store"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestServer_HasItsOwnService_S30(t *testing.T) {
	services := schema.GroupResource{Resource: "services"}
	held := func(s *Server) (out []string) {
		for _, obj := range s.Objects(services) {
			out = append(out, obj.GetNamespace()+"/"+obj.GetName())
		}
		return out
	}
	s := New(Options{})
	if got := held(s); len(got) != 1 || got[0] != "default/kubernetes" || s.Revision() != 1 {
		t.Errorf("a new server has Services %v at revision %d, want default/kubernetes at 1", got, s.Revision())
	}
	if _, err := s.Put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(services, ownService); err != nil {
		t.Fatal(err)
	}
	again := New(Options{})
	if err := again.keepIn(store.NewJournal("journal", &slowFile{}), keptOf(s)); err != nil {
		t.Fatal(err)
	}
	if got := held(again); len(got) != 2 || got[0] != "default/kubernetes" {
		t.Errorf("after a start the server has Services %v, want its own and default/mine", got)
	}
}
