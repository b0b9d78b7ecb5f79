// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

func fromClient(api kubernetes.Interface) *informer.SharedInformer[*corev1.ConfigMap] {
	maps := api.CoreV1().ConfigMaps("prod")
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return maps.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, opts)
		},
	}, api)
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	return informer.New(clientgo.NewListerWatcher[*corev1.ConfigMap](lw), kind, informer.Options{})
}

// The informer reads from a clientset, here a fake one.
func ExampleNewListerWatcher() {
	maps := fromClient(fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "site"},
		Data:       map[string]string{"index.html": "It balances."},
	}))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := maps.Run(ctx); err != nil {
			fmt.Println(err)
		}
	})
	<-maps.Synced()
	site, err := maps.Lister().Get(kube.Key{Namespace: "prod", Name: "site"})
	fmt.Println(site.Data["index.html"], err)
	cancel()
	running.Wait()
	// Output:
	// It balances. <nil>
}
