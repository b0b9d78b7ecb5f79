// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
)

// addNodeIndex indexes Pods by the name of their Node.
func addNodeIndex(pods *informer.SharedInformer[*corev1.Pod]) error {
	return pods.AddIndex("node", func(pod *corev1.Pod) []string { return []string{pod.Spec.NodeName} })
}

// runningOn counts the running Pods of a Node.
func runningOn(pods informer.Lister[*corev1.Pod], node string) (running int, err error) {
	onNode, err := pods.ByIndex("node", node)
	if err != nil {
		return 0, err // no such index, or the first list has not arrived
	}
	for pod := range onNode { // slices.Collect(onNode) makes a slice of it
		if pod.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return running, nil
}

func ExampleLister_ByIndex() {
	server := informertest.NewServer[*corev1.Pod]()
	for i, node := range []string{"a", "a", "b"} {
		server.Write(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", i)},
			Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		})
	}
	pods := informer.New[*corev1.Pod](server, corev1.SchemeGroupVersion.WithKind("Pod"), informer.Options{})
	if err := addNodeIndex(pods); err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	<-pods.Synced()
	fmt.Println(runningOn(pods.Lister(), "a"))
	stop()
	fmt.Println(<-ended)
	// Output:
	// 2 <nil>
	// <nil>
}
