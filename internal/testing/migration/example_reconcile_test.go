// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

func (r *reconciler) Reconcile(ctx context.Context, cron *batchv1.CronJob) (reconcile.Result, error) {
	waiting, err := r.jobs.List(informer.QueryOptions{Namespace: cron.Namespace, Index: "suspended", IndexValue: "true"})
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(waiting) > 0 {
		return reconcile.After(time.Minute, "a Job is suspended"), nil
	}
	job := jobFor(cron)
	if err := reconcile.SetControllerReference(cron, job, r.client.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.client.Create(ctx, job); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	r.events.Eventf(cron, job, corev1.EventTypeNormal, "Started", "Create", "started Job %s", job.Name)
	changed := kube.Copy(cron)
	changed.Status.LastScheduleTime = job.CreationTimestamp.DeepCopy()
	_, err = r.client.PatchChanges(ctx, cron, changed)
	return reconcile.Result{}, err
}

func jobFor(cron *batchv1.CronJob) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: cron.Namespace, Name: reconcile.ChildName(cron.Name, "run")},
		Spec:       cron.Spec.JobTemplate.Spec,
	}
}

func Example_reconcile() {
	r := &reconciler{jobs: informertest.ListerOf[*batchv1.Job](), events: events.NewFakeRecorder(100)} // and a client
	result, err := r.Reconcile(context.Background(), &batchv1.CronJob{})
	fmt.Println(result, err)
}
