// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory_test

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/bridge/clientgo/factory"
	"github.com/flyball-dev/flyball/informer"
)

func run(ctx context.Context, config *rest.Config, client kubernetes.Interface) error {
	flyball, err := informer.NewSharedInformerFactory(config, scheme.Scheme, informer.Options{})
	if err != nil {
		return err
	}
	shared := factory.New(flyball, factory.Options{Client: client}) // an informers.SharedInformerFactory

	c := newController(client, shared.Apps().V1().Deployments(), shared.Core().V1().Pods())

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return flyball.Run(ctx) })
	shared.StartWithContext(ctx)
	group.Go(func() error { return c.Run(ctx) })
	return group.Wait()
}

// controller stands for one that was written for client-go.
type controller struct {
	deployments appsinformers.DeploymentInformer
	pods        coreinformers.PodInformer
}

func newController(_ kubernetes.Interface, deployments appsinformers.DeploymentInformer, pods coreinformers.PodInformer) *controller {
	return &controller{deployments, pods}
}

func (c *controller) Run(ctx context.Context) error {
	<-ctx.Done() // …
	return nil
}

// The controller does not change, only the lines that construct client-go's factory.
func ExampleNew() {
	config, err := rest.InClusterConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := run(context.Background(), config, client); err != nil {
		fmt.Println(err)
	}
}
