// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/source"
)

// The keys of all objects are added at the start, and then each key whose object changes.
func ExampleKind() {
	server := informertest.NewServer[*appsv1.Deployment]()
	server.Write(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	deployments := informer.New(server, appsv1.SchemeGroupVersion.WithKind("Deployment"), informer.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = deployments.Run(ctx) }() // it ends by cancel

	s := source.Kind(deployments, source.Self) // a controller's Watch takes it
	err := s.Run(ctx, func(key source.Key, cause source.Cause) {
		fmt.Println(key, cause.Type, cause.Initial)
		cancel()
	})
	fmt.Println(err)
	// Output:
	// default/web added true
	// <nil>
}

// Owned adds the keys of the owners.
func ExampleOwned() {
	children := informertest.NewServer[*appsv1.Deployment]()
	children.Write(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "site-web",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: webv1.GroupVersion.String(), Kind: "Website", Name: "site", UID: "8f14", Controller: new(true),
		}},
	}})
	deployments := informer.New(children, appsv1.SchemeGroupVersion.WithKind("Deployment"), informer.Options{})
	owners := informertest.NewServer[*webv1.Website]()
	websites := informer.New(owners, webv1.GroupVersion.WithKind("Website"), informer.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = deployments.Run(ctx) }() // it ends by cancel

	s := source.Owned(deployments, websites) // a controller's Watch takes it
	err := s.Run(ctx, func(key source.Key, cause source.Cause) {
		if key.Namespace == "" {
			return // this server does not say whether Websites have namespaces, so both keys are added
		}
		fmt.Println(key, "because of", cause.Object)
		cancel()
	})
	fmt.Println(err)
	// Output:
	// default/site because of default/site-web
	// <nil>
}

// A key is added when the source has not named it for a while.
func ExampleDebounce() {
	events := make(chan string, 3)
	for range 3 {
		events <- "site"
	}
	close(events)

	noisy := source.Channel(events, source.ChannelOptions{Name: "events"})
	s := source.Debounce(noisy, 100*time.Millisecond, time.Second) // a controller's Watch takes it
	ctx, cancel := context.WithCancel(context.Background())
	err := s.Run(ctx, func(key string, cause source.Cause) {
		fmt.Println(key, cause.Source)
		cancel()
	})
	fmt.Println(err)
	// Output:
	// site channel events
	// <nil>
}
