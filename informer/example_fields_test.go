// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
)

func placements(f *informer.SharedInformerFactory) *informer.SharedInformer[*corev1.Pod] {
	return informer.For[*corev1.Pod](f, informer.Scope{Fields: []string{"spec.nodeName", "status.phase"}})
}

func ExampleScope_fields() {
	f, err := informer.NewSharedInformerFactory(&rest.Config{Host: "https://api.example.com"}, clientscheme.Scheme, informer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(placements(f).Lister().Fields())
	wrong := informer.For[*corev1.Pod](f, informer.Scope{Fields: []string{"spec.nodename"}})
	fmt.Println(wrong.Err())
	// Output:
	// [spec.nodeName status.phase]
	// informer of Pod: scope with Fields: field path "spec.nodename" of v1.Pod: v1.PodSpec has no field "nodename" in JSON; did you mean nodeName?
}
