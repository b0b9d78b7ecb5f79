// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
)

var (
	// firstNamespaces are the namespaces of each cluster, there from the start.
	firstNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}
	// immortal are those that nobody may delete.
	immortal = firstNamespaces[:3]
)

// installNamespacesLocked makes those of the first namespaces that are not
// there. They belong to the revision that there is, and nobody is told.
func (s *Server) installNamespacesLocked() {
	for _, name := range s.namespaces {
		if s.homeLocked(name) == nil {
			s.mu.log.Set(object.Namespaces, types.NamespacedName{Name: name}, firstNamespace(name).At(s.mu.log.Revision))
		}
	}
}

// firstUID is the UID of an object that is there from the start, by its name.
func firstUID(name string) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return fmt.Sprintf("00000000-0000-4000-8001-%012x", hash.Sum64()>>16)
}

// firstNamespace is a namespace whose UID follows from its name.
func firstNamespace(name string) *object.Object {
	return &object.Object{Fields: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{
			"name": name, "uid": firstUID(name), "creationTimestamp": ownership.EntryTime(time.Now()),
			"labels": map[string]any{corev1.LabelMetadataName: name},
		},
		"spec":   map[string]any{"finalizers": []any{string(corev1.FinalizerKubernetes)}},
		"status": map[string]any{"phase": string(corev1.NamespaceActive)},
	}}
}

// homeLocked is the namespace of a name; nil: there is none.
func (s *Server) homeLocked(name string) *object.Object {
	return s.mu.log.Get(object.Namespaces, types.NamespacedName{Name: name})
}

// housed refuses new objects in a namespace that is not there or is being
// emptied.
func (s *Server) housed(q *writing, name string) error {
	if !q.kind.Namespaced {
		return nil
	}
	s.mu.Lock()
	home := s.homeLocked(q.namespace)
	s.mu.Unlock()
	if home == nil {
		return apierrors.NewNotFound(object.Namespaces, q.namespace)
	}
	if object.Unset(home.Meta().GetDeletionTimestamp()) {
		return nil
	}
	err := apierrors.NewForbidden(q.kind.GroupResource(), name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", q.namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", q.namespace), Field: "metadata.namespace"})
	return err
}

// spared refuses the deletion of a namespace that each cluster needs.
func spared(k *kinds.Kind, name string) error {
	if k.GroupResource() == object.Namespaces && slices.Contains(immortal, name) {
		return apierrors.NewForbidden(object.Namespaces, name, errors.New("this namespace may not be deleted"))
	}
	return nil
}
