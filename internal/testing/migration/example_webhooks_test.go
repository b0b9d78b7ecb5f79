// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"
)

func addWebhooks(mgr *manager.Manager) {
	webhook.Mutate(mgr.Webhooks(), "", func(ctx context.Context, req *webhook.Request, cron *batchv1.CronJob) error {
		if cron.Spec.ConcurrencyPolicy == "" {
			cron.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
		}
		return nil
	})
	webhook.Validate(mgr.Webhooks(), "", func(ctx context.Context, req *webhook.Request, old, cron *batchv1.CronJob) error {
		if cron == nil {
			return nil // a deletion
		}
		return validate(cron)
	})
}

func validate(cron *batchv1.CronJob) error {
	if cron.Spec.Schedule == "" {
		return errors.New("spec.schedule is empty")
	}
	return nil
}

func Example_webhooks() {
	mgr, err := manager.New(manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	addWebhooks(mgr)
}
