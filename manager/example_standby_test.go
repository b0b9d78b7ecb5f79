// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
)

func addReporter(mgr *manager.Manager) error {
	return mgr.AddTo(manager.StageStandby, reporter{mgr.StandbyClient()})
}

type reporter struct{ client *client.Client }

func (r reporter) Run(ctx context.Context) error {
	pods := 0
	for _, err := range client.List[*corev1.Pod](ctx, r.client) {
		if err != nil {
			return err
		}
		pods++
	}
	fmt.Println(pods, "Pods")
	<-ctx.Done()
	return nil
}

// What is added to StageStandby runs on every replica, leading or not.
func ExampleManager_AddTo() {
	mgr, err := manager.New(manager.Options{LeaderElection: &manager.LeaderElection{ID: "website.example.dev"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := addReporter(mgr); err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Run(manager.SignalContext()); err != nil {
		fmt.Println(err)
	}
}
