// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/reconcile"
)

type reconciler struct{}

func (*reconciler) Reconcile(context.Context, *batchv1.CronJob) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

func removeBackups(context.Context, *batchv1.CronJob) error { return nil }

func validate(*batchv1.CronJob) error { return nil }

func useConfig(*rest.Config) error { return nil }
