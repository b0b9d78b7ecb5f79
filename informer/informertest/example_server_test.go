// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informertest_test

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
)

// An informer lists and watches a server in memory.
func ExampleNewServer() {
	server := informertest.NewServer[*corev1.ConfigMap]()
	server.Write(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}})
	maps := informer.New(server, corev1.SchemeGroupVersion.WithKind("ConfigMap"), informer.Options{})

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := maps.Run(ctx); err != nil {
			fmt.Println(err)
		}
	})
	<-maps.Synced()
	all, err := maps.Lister().List(informer.QueryOptions{})
	fmt.Println(len(all), err)
	cancel()
	running.Wait()
	// Output:
	// 1 <nil>
}
