// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/resource/builtin"
)

const (
	operatorID = "replicas"
	namespace  = "default"
	shardCount = 32
	// leaseDuration is short, so that one need not wait long. The default suits production.
	leaseDuration = 4 * time.Second
)

// Annotations by which a process records that it has reconciled an object, and what it saw.
const (
	seenBy    = "example.flyball.dev/seen-by"
	seenValue = "example.flyball.dev/seen-value"
)

// operate runs the operator until its standard input or a signal ends it.
func operate(name string) error {
	ctx, stop := context.WithCancel(manager.SignalContext())
	defer stop()
	var parent sync.WaitGroup // nothing waits for it: it ends with this process
	parent.Go(func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin) // the parent writes nothing, and ends
	})
	cfg, err := manager.FindConfig("", "")
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := builtin.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := manager.New(manager.Options{
		Config: cfg, Scheme: scheme, LogLevel: "error",
		MetricsAddress: "127.0.0.1:0", HealthAddress: "127.0.0.1:0",
		Sharding: &manager.Sharding{Shards: shardCount},
		LeaderElection: &manager.LeaderElection{
			ID: operatorID, Namespace: namespace, Identity: name, LeaseDuration: leaseDuration,
		},
	})
	if err != nil {
		return err
	}
	if err := setup(mgr, name); err != nil {
		return err
	}
	return mgr.Run(ctx)
}

// setup adds a controller that annotates each ConfigMap with the name of the process and the
// value that it has seen.
func setup(mgr *manager.Manager, name string) error {
	configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())
	return mgr.Add(reconcile.For(configMaps,
		func(ctx context.Context, configMap *corev1.ConfigMap) (reconcile.Result, error) {
			value, isOurs := configMap.Data["value"]
			if !isOurs || configMap.Annotations[seenBy] == name && configMap.Annotations[seenValue] == value {
				return reconcile.Result{}, nil
			}
			seen := kube.Copy(configMap)
			if seen.Annotations == nil {
				seen.Annotations = map[string]string{}
			}
			seen.Annotations[seenBy], seen.Annotations[seenValue] = name, value
			_, err := mgr.Client().PatchChanges(ctx, configMap, seen)
			return reconcile.Result{}, err
		}, reconcile.Options{}))
}
