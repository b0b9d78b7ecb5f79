// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
	"github.com/flyball-dev/flyball/simulate/internal/store"
)

// firstNamespaces are the namespaces that each cluster has from the start.
var firstNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// installNamespaces creates the missing ones of some namespaces. They are part of the
// present revision, so watches do not receive them.
func installNamespaces(tx *store.Tx, namespaces []string) {
	for _, name := range namespaces {
		if tx.Get(object.Namespaces, types.NamespacedName{Name: name}) == nil {
			tx.Install(object.Namespaces, firstNamespace(name))
		}
	}
}

// firstUID returns the UID of an object that exists from the start. It follows from the
// name.
func firstUID(name string) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return fmt.Sprintf("%08x-0000-4000-8001-%012x", uint32(hash.Sum64()), hash.Sum64()>>16)
}

// firstNamespace returns a namespace whose UID follows from its name.
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
