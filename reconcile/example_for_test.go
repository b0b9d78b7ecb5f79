// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

// For calls the function with each object, and again when the object changes. In a program the informer
// comes from informer.For, and a manager runs it and the controller.
func ExampleFor() {
	server := informertest.NewServer[*corev1.ConfigMap]()
	server.Write(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"},
		Data:       map[string]string{"index.html": "It balances."},
	})
	maps := informer.New(server, corev1.SchemeGroupVersion.WithKind("ConfigMap"), informer.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = maps.Run(ctx) }() // it ends by cancel

	c := reconcile.For(maps, func(ctx context.Context, obj *corev1.ConfigMap) (reconcile.Result, error) {
		fmt.Println(kube.KeyOf(obj), obj.Data["index.html"])
		cancel() // a controller runs until its context ends
		return reconcile.Result{}, nil
	}, reconcile.Options{})
	fmt.Println(c.Name(), c.Run(ctx))
	// Output:
	// default/site It balances.
	// configmap <nil>
}
