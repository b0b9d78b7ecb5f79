// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/simulate"
)

// Every client that is made of a rest.Config can talk to the server. In tests, package simtest does
// this in one call.
func ExampleNew() {
	network := simulate.NewNetwork()
	transport := network.Transport()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://simulated", Transport: transport})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithCancel(context.Background())
	server := simulate.New(simulate.Options{})
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Run(ctx, network.Listener()); err != nil {
			fmt.Println(err)
		}
	})

	maps := client.CoreV1().ConfigMaps("default")
	site := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "site"}}
	created, err := maps.Create(ctx, site, metav1.CreateOptions{})
	fmt.Println(created.Namespace, created.Name, err)
	_, err = maps.Create(ctx, site, metav1.CreateOptions{})
	fmt.Println(err)

	cancel()
	running.Wait()
	transport.CloseIdleConnections()
	// Output:
	// default site <nil>
	// configmaps "site" already exists
}
