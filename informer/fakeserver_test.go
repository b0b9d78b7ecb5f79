// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/kube"
)

// server serves ConfigMaps of namespace "ns" to an informer.
type server struct {
	*informertest.Server[*corev1.ConfigMap]
}

func newServer() server { return server{informertest.NewServer[*corev1.ConfigMap]()} }

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"v": value}}
}

// put creates or updates an object and returns the server's answer.
func (s server) put(name, value string) *corev1.ConfigMap { return s.Write(configMap(name, value)) }

// remove deletes an object and returns its last state.
func (s server) remove(name string) *corev1.ConfigMap {
	return s.Delete(kube.Key{Namespace: "ns", Name: name})
}
