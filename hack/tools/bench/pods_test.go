// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/hack/tools/bench/internal/cluster"
)

// The cluster of the Pods: twenty per Deployment, and about 21 per node when there are
// 20,000.
const (
	podNamespaces  = 200
	podDeployments = 1000
	podNodes       = 952
)

func podName(i int) string {
	return fmt.Sprintf("service-%d-%x-%05x", i%podDeployments, 0x5d4f8c7b9+i%podDeployments, i)
}
func podNamespace(i int) string { return "namespace-" + strconv.Itoa(i%podNamespaces) }
func podNode(i int) string      { return fmt.Sprintf("node-%03d.eu-central-1.compute.internal", i%podNodes) }
func podUID(i int) types.UID    { return types.UID(fmt.Sprintf("0b1c5e42-3a1c-4a4b-8a4b-%012x", i)) }
func podKey(i int) key          { return key{Namespace: podNamespace(i), Name: podName(i)} }

// readyPods returns n Pods, each with its own metadata and outer struct. Deeper parts,
// which no informer reads, are shared between the Pods, so a hundred thousand of them leave
// memory for what is measured: the informer, not the Pods.
func readyPods(n int) []*corev1.Pod {
	like := cluster.NewPods(cluster.PodOptions{}).Pod(0)
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
