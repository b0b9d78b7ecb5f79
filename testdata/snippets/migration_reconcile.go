// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
)

type reconciler struct {
	client *client.Client
	scheme *runtime.Scheme
	jobs   informer.Lister[*batchv1.Job]
	events events.EventRecorder
}

func jobFor(cron *batchv1.CronJob) *batchv1.Job {
	return &batchv1.Job{Spec: cron.Spec.JobTemplate.Spec}
}
