// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flyball-dev/flyball/client"
)

func awaitJob(ctx context.Context, c *client.Client, namespace, name string) error {
	one := client.MatchingFields{"metadata.name": name}
	for event, err := range client.Watch[*batchv1.Job](ctx, c, client.InNamespace(namespace), one) {
		if err != nil {
			return err
		}
		if event.Object.Status.Succeeded > 0 {
			return nil
		}
	}
	return nil
}

// Watch is one request. A command or a test uses it to wait for something once.
func ExampleWatch() {
	var c *client.Client // a manager's Client, or that of client.New
	if err := awaitJob(context.Background(), c, "default", "backup"); err != nil {
		fmt.Println(err)
	}
}
