// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package actors plays the programs of a cluster besides the API server: the garbage
// collector, the namespace controller, the workload controllers, the scheduler and the
// kubelets. They see the server through Cluster, and do not know how it stores or serves
// objects. One goroutine takes all steps, at times that depend on the seed.
//
//	run.go       which actors there are
//	controllers.go   what they share: Cluster, the index of objects, the timeline of steps
//	others       one actor each; none knows the list of all
package actors

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options say which actors run, and how fast. See simulate.Actors.
type Options struct {
	GarbageCollector, Namespaces, Workloads, Pods bool
	Delay                                         time.Duration
	Statuses                                      map[schema.GroupKind]map[string]any
}

// Run runs actors in the caller's goroutine until ctx ends.
func Run(ctx context.Context, cluster Cluster, seed uint64, opts Options) error {
	if opts.Delay < 0 {
		return errors.New("run actors: Delay is negative; 0 is 50 ms")
	}
	c := newControllers(cluster, seed, opts.Delay)
	c.add(chosen(c, opts)...)
	c.work(ctx)
	return nil
}

// chosen returns the actors that opts name.
func chosen(c *controllers, opts Options) (all []actor) {
	if opts.GarbageCollector {
		all = append(all, collector{c})
	}
	if opts.Namespaces {
		all = append(all, namespaceKeeper{c})
	}
	if opts.Workloads {
		all = append(all,
			deploymentController{c}, replicaSetController{c}, statefulSetController{c}, daemonSetController{c},
			jobController{c}, endpointKeeper{c},
		)
	}
	if opts.Workloads || opts.Pods {
		all = append(all, nodeKeeper{c}, claimProtection{c}, podKeeper{c, map[netip.Addr]Reference{}})
	}
	if len(opts.Statuses) > 0 {
		all = append(all, stub{c, opts.Statuses})
	}
	return all
}
