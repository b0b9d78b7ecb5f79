// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"context"

	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
)

type controller struct{}

func newController(kubernetes.Interface, appsinformers.DeploymentInformer, coreinformers.PodInformer) controller {
	return controller{}
}

func (controller) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

var _ = run
