// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

func withFinalizer(mgr *manager.Manager, c *reconcile.ObjectController[*batchv1.CronJob]) {
	c.Finalize("example.dev/backup", mgr.Client(), func(ctx context.Context, cron *batchv1.CronJob) (reconcile.Result, error) {
		return reconcile.Result{}, removeBackups(ctx, cron)
	})
}

func removeBackups(_ context.Context, cron *batchv1.CronJob) error {
	fmt.Println("remove the backups of", cron.Name)
	return nil
}

func Example_finalizer() {
	mgr, err := manager.New(manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &reconciler{client: mgr.Client(), events: mgr.Events("backup")}
	c := reconcile.For(informer.For[*batchv1.CronJob](mgr.Informers()), r.Reconcile, reconcile.Options{})
	withFinalizer(mgr, c)
	if err := mgr.Add(c); err != nil {
		fmt.Println(err)
	}
}
