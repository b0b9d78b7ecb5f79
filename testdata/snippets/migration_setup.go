// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flyball-dev/flyball/reconcile"
)

func (*reconciler) Reconcile(context.Context, *batchv1.CronJob) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}
