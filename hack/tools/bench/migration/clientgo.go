// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

type deploymentController struct {
	client      kubernetes.Interface
	deployments appslisters.DeploymentLister
	synced      cache.InformerSynced
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func runController(ctx context.Context, client kubernetes.Interface) error {
	shared := informers.NewSharedInformerFactory(client, 10*time.Minute)
	deployments := shared.Apps().V1().Deployments()
	c := &deploymentController{
		client:      client,
		deployments: deployments.Lister(),
		synced:      deployments.Informer().HasSynced,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	enqueue := func(obj any) {
		if key, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			c.queue.Add(key)
		}
	}
	_, err := deployments.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
		DeleteFunc: enqueue,
	})
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return errors.New("the cache has not synced")
	}
	var workers wait.Group
	workers.StartWithContext(ctx, c.work)
	<-ctx.Done()
	c.queue.ShutDown()
	workers.Wait()
	return nil
}

func (c *deploymentController) work(ctx context.Context) {
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if err := c.sync(ctx, key); err != nil {
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

func (c *deploymentController) sync(ctx context.Context, key cache.ObjectName) error {
	d, err := c.deployments.Deployments(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	others, err := c.deployments.Deployments(key.Namespace).List(labels.SelectorFromSet(d.Labels))
	if err != nil {
		return err
	}
	d = d.DeepCopy()
	d.Annotations = map[string]string{"example.dev/peers": fmt.Sprint(len(others))}
	_, err = c.client.AppsV1().Deployments(key.Namespace).Update(ctx, d, metav1.UpdateOptions{})
	return err
}
