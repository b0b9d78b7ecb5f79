// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package underneath

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clientqueue "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
)

// NewClient is client.New whose writes a cache of the bridge observes. Its reads do not use
// that cache.
func NewClient(config *rest.Config, opts client.Options) (client.Client, error) {
	live, err := client.New(config, opts)
	if err != nil || opts.Cache != nil {
		return live, err
	}
	seen, err := observing(config)
	if err != nil {
		return nil, err
	}
	opts.Cache = &client.CacheOptions{Reader: seen}
	written, err := bridge.NewClient(config, opts)
	return readsLive{written, live}, err
}

// readsLive reads from the server.
type readsLive struct {
	client.Client
	live client.Reader
}

func (c readsLive) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.live.Get(ctx, key, obj, opts...)
}

func (c readsLive) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.live.List(ctx, list, opts...)
}

var (
	once   sync.Once
	shared cache.Cache
	runs   sync.WaitGroup // it runs as long as the process
	failed error
)

// observing returns the cache of the process, which watches what the suite of the client
// writes.
func observing(config *rest.Config) (cache.Cache, error) {
	once.Do(func() {
		if shared, failed = bridge.NewCache(config, cache.Options{}); failed != nil {
			return
		}
		runs.Go(func() { _ = shared.Start(context.Background()) })
		for _, obj := range watched() {
			if _, failed = shared.GetInformer(context.Background(), obj); failed != nil {
				return
			}
		}
	})
	return shared, failed
}

// watched are the kinds that the suite of the client writes.
func watched() []client.Object {
	return []client.Object{&appsv1.Deployment{}, &corev1.Node{}, &corev1.Pod{}, &corev1.ConfigMap{}, &corev1.Namespace{}}
}

// NewQueue is a queue of the bridge without its priorities: suites compare the queue that
// they made with what a handler is given, which wraps a queue with priorities.
func NewQueue() clientqueue.TypedRateLimitingInterface[reconcile.Request] {
	q := bridge.NewQueue("test", clientqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	return struct {
		clientqueue.TypedRateLimitingInterface[reconcile.Request]
	}{q}
}

// NewQueueWithConfig is NewQueue with the arguments of client-go's constructor.
func NewQueueWithConfig(clientqueue.TypedRateLimiter[reconcile.Request], clientqueue.TypedRateLimitingQueueConfig[reconcile.Request]) clientqueue.TypedRateLimitingInterface[reconcile.Request] {
	return NewQueue()
}
