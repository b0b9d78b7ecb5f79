// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

type reconciler struct {
	client *client.Client
	jobs   informer.Lister[*batchv1.Job]
	events events.EventRecorder
}

func setup(mgr *manager.Manager) error {
	cronJobs := informer.For[*batchv1.CronJob](mgr.Informers())
	jobs := informer.For[*batchv1.Job](mgr.Informers())
	settings := informer.For[*corev1.ConfigMap](mgr.Informers())
	if err := jobs.AddIndex("suspended", suspended); err != nil {
		return err
	}

	r := &reconciler{client: mgr.Client(), jobs: jobs.Lister(), events: mgr.Events("backup")}
	c := reconcile.For(cronJobs, r.Reconcile, reconcile.Options{Predicate: source.SpecChanged, Workers: 4})
	c.Watch(source.Owned(jobs, cronJobs), source.Mapped(settings, cronJobsOf))
	return mgr.Add(c)
}

func suspended(job *batchv1.Job) []string {
	return []string{strconv.FormatBool(job.Spec.Suspend != nil && *job.Spec.Suspend)}
}

func cronJobsOf(settings *corev1.ConfigMap) []reconcile.Key {
	return []reconcile.Key{{Namespace: settings.Namespace, Name: settings.Labels["cronjob"]}}
}

func Example_setup() {
	mgr, err := manager.New(manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := setup(mgr); err != nil {
		fmt.Println(err)
	}
}
