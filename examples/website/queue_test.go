// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

// inBubble runs test in virtual time beside a simulated server that has the CRD.
func inBubble(t *testing.T, test func(t *testing.T, opts manager.Options)) {
	t.Helper()
	crds, err := envtest.ParseCRDs(bytes.NewReader(crd))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, network := simulate.New(simulate.Options{Namespaces: []string{"flood", "quiet"}}), simulate.NewNetwork()
		var group sync.WaitGroup
		defer group.Wait()
		serving, stop := context.WithCancel(t.Context())
		defer stop()
		group.Go(func() {
			if err := s.Run(serving, network.Listener()); err != nil {
				t.Errorf("the simulated server ended: %v", err)
			}
		})
		for _, crd := range crds {
			if _, err := s.Put(crd); err != nil {
				t.Fatal(err)
			}
		}
		transport := network.Transport()
		defer transport.CloseIdleConnections()
		test(t, manager.Options{
			Scheme: testScheme(), MetricsAddress: "0", HealthAddress: "0",
			Config:    &rest.Config{Host: "http://simulated", Transport: transport},
			Informers: informer.Options{DetectMutations: informertest.NoMutations(t.Error)},
		})
	})
}

// running starts mgr; stop ends it.
func running(t *testing.T, mgr *manager.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A standby fills its queue and reconciles nothing, so the order is visible.
func TestQueue_WhatAUserChangesIsFirstAndNamespacesTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, opts manager.Options) {
		admin, err := client.New(opts.Config, opts.Scheme, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		create := func(namespace, name string) *webv1.Website {
			t.Helper()
			site := website(name, "<p>", 1)
			site.Namespace = namespace
			if err := admin.Create(t.Context(), site); err != nil {
				t.Fatal(err)
			}
			return site
		}
		var flood *webv1.Website
		for i := range 9 {
			flood = create("flood", fmt.Sprint("site-", i))
		}
		create("quiet", "site")

		mgr, err := manager.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		c := newController(mgr, asItIs)
		if err := mgr.Add(manager.RunnableFunc(c.Standby)); err != nil {
			t.Fatal(err)
		}
		defer running(t, mgr)()
		<-c.Synced()
		synctest.Wait()

		flood.Spec.Content = "<h1>"
		if err := admin.Update(t.Context(), flood); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		keys := c.QueueSnapshot().Keys
		if len(keys) != 10 || keys[0].Key != kube.KeyOf(flood) || keys[0].Priority != urgent {
			t.Errorf("the queue is %+v, want 10 keys, that of the changed Website first", keys)
		}
		if quiet := (reconcile.Key{Namespace: "quiet", Name: "site"}); len(keys) > 2 && keys[1].Key != quiet && keys[2].Key != quiet {
			t.Errorf("the queue is %+v, want the other namespace's Website among the next two", keys)
		}
	})
}

// Five Pods that become ready one after the other cause one reconcile.
func TestQueue_ADeploymentIsLookedAtWhenItHasComeToRest(t *testing.T) {
	inBubble(t, func(t *testing.T, opts manager.Options) {
		mgr, err := manager.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		c := newController(mgr, asItIs)
		if err := mgr.Add(c); err != nil {
			t.Fatal(err)
		}
		defer running(t, mgr)()
		admin, err := client.New(opts.Config, opts.Scheme, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		site := website("site", "<p>", 5)
		site.Namespace = "quiet"
		if err := admin.Create(t.Context(), site); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		keysOfDeployments := func() uint64 {
			for _, s := range c.Snapshot().Sources {
				if s.Kind.Kind == "Deployment" {
					return s.Keys
				}
			}
			t.Fatal("Deployments are not watched")
			return 0
		}
		before := keysOfDeployments()
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
		if err := admin.Get(t.Context(), kube.KeyOf(d), d); err != nil {
			t.Fatal(err)
		}
		for ready := int32(1); ready <= 5; ready++ {
			d.Status.ObservedGeneration = d.Generation
			d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = ready, ready, ready, ready
			if err := admin.Status().Update(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if got := keysOfDeployments() - before; got != 1 {
			t.Errorf("its Website was named %d times, want once", got)
		}
		if err := admin.Get(t.Context(), kube.KeyOf(site), site); err != nil || site.Status.ReadyReplicas != 5 {
			t.Errorf("%v, its status is %+v, want 5 ready replicas in it", err, site.Status)
		}
	})
}
