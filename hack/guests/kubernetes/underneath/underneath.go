// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package underneath creates client-go's informer factories over flyball's informers, for
// the overlay with which the test builds kube-controller-manager and kube-scheduler: calls
// of client-go's constructors become calls of these.
package underneath

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/bridge/clientgo/byresource"
	"github.com/flyball-dev/flyball/bridge/clientgo/factory"
	"github.com/flyball-dev/flyball/informer"
)

// flyball returns a factory, which runs on the first Start of a factory created over it.
func flyball(ctx context.Context, config *rest.Config) *informer.SharedInformerFactory {
	f, err := informer.NewSharedInformerFactory(config, clientscheme.Scheme, informer.Options{Logger: klog.FromContext(ctx)})
	if err != nil {
		klog.Fatal(err)
	}
	return f
}

// Typed replaces informers.NewSharedInformerFactoryWithOptions.
func Typed(ctx context.Context, config *rest.Config, client kubernetes.Interface, transform cache.TransformFunc, name *cache.InformerName) informers.SharedInformerFactory {
	return factory.New(flyball(ctx, config), factory.Options{
		Client: client, Transform: transform, Name: name, RunOnStart: true, Logger: klog.FromContext(ctx)})
}

// Scheduler replaces the scheduler's own NewInformerFactory, which sees only Pods that have
// not ended.
func Scheduler(ctx context.Context, config *rest.Config, client kubernetes.Interface, name *cache.InformerName) informers.SharedInformerFactory {
	f := flyball(ctx, config)
	typed := factory.New(f, factory.Options{Client: client, Name: name, RunOnStart: true, Logger: klog.FromContext(ctx)})
	living := informer.Scope{FieldSelector: fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))).String()}
	pods := clientgo.NewSharedIndexInformer(informer.For[*corev1.Pod](f, living), clientgo.Options{})
	typed.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return pods })
	return typed
}

// Metadata replaces metadatainformer.NewSharedInformerFactoryWithOptions.
func Metadata(ctx context.Context, config *rest.Config, transform cache.TransformFunc) metadatainformer.SharedInformerFactory {
	return byresource.NewMetadata(flyball(ctx, config), byresource.Options{Transform: transform, RunOnStart: true, Logger: klog.FromContext(ctx)})
}

// Dynamic replaces dynamicinformer.NewFilteredDynamicSharedInformerFactory.
func Dynamic(ctx context.Context, config *rest.Config) dynamicinformer.DynamicSharedInformerFactory {
	return byresource.NewDynamic(flyball(ctx, config), byresource.Options{RunOnStart: true, Logger: klog.FromContext(ctx)})
}
