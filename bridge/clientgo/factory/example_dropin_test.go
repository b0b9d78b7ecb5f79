// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/bridge/clientgo/factory"
	"github.com/flyball-dev/flyball/informer"
)

func newInformers(config *rest.Config) (informers.SharedInformerFactory, error) {
	flyball, err := informer.NewSharedInformerFactory(config, scheme.Scheme, informer.Options{})
	if err != nil {
		return nil, err
	}
	return factory.New(flyball, factory.Options{
		RunOnStart: true,
		Informers:  clientgo.Options{StripManagedFields: true},
	}), nil
}

// With RunOnStart the program uses only client-go's factory.
func ExampleNew_runOnStart() {
	config, err := rest.InClusterConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	shared, err := newInformers(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	pods := shared.Core().V1().Pods().Lister()

	ctx, cancel := context.WithCancel(context.Background())
	shared.StartWithContext(ctx)
	shared.WaitForCacheSync(ctx.Done())
	pod, err := pods.Pods("default").Get("web-0")
	fmt.Println(pod, err)
	cancel()
	shared.Shutdown()
}
