// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/compact"
)

// The Pods are held compressed, whoever reads them.
func Example() {
	factory, err := informer.NewSharedInformerFactory(&rest.Config{}, scheme.Scheme, informer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(compactPods(factory))
	// Output: <nil>
}

func compactPods(factory *informer.SharedInformerFactory) error {
	pods := informer.For[*corev1.Pod](factory)
	return pods.Compact(compact.New(compact.Options{})) // or informer.Options.Compact, for all kinds
}
