// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"reflect"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flyball-dev/flyball/hack/tools/bench/internal/cluster"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// fleetScheme knows the custom kinds and those of Kubernetes.
func fleetScheme(b testing.TB) *k8sruntime.Scheme {
	s := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{scheme.AddToScheme, cluster.AddFleetToScheme} {
		if err := add(s); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// informerOf returns an informer of the kind of w, whose objects are like like: Unstructured or a
// custom resource. It is indexed by namespace; synced closes when a handler has received
// all.
func informerOf(b testing.TB, w *wire, name string, like cluster.Object, f managed) (synced <-chan struct{}, run func(context.Context)) {
	cfg, types := w.config(), fleetScheme(b)
	switch name {
	case "flyball":
		return flyballOf(b, w, newFactory(b, cfg, types, f), like)
	case "client-go":
		return clientGoOf(b, w, cfg, types, like, f)
	}
	ctrl.SetLogger(logr.Discard())
	all, err := ctrlcache.New(cfg, cacheOptions(b, cfg, w.kind, types, f))
	if err != nil {
		b.Fatal(err)
	}
	wanted := like.DeepCopyObject().(cluster.Object)
	wanted.GetObjectKind().SetGroupVersionKind(w.kind)
	objects, err := all.GetInformer(logr.NewContext(context.Background(), logr.Discard()), wanted, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		b.Fatal(err)
	}
	r, err := objects.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
	if err != nil {
		b.Fatal(err)
	}
	return r.HasSyncedChecker().Done(), func(ctx context.Context) {
		if err := all.Start(ctx); err != nil {
			b.Error(err)
		}
	}
}

func flyballOf(b testing.TB, w *wire, factory *informer.SharedInformerFactory, like cluster.Object) (<-chan struct{}, func(context.Context)) {
	var synced <-chan struct{}
	if _, ok := like.(*unstructured.Unstructured); ok {
		r, err := informer.ForKind(factory, w.kind).AddHandler(func(kube.Event[*unstructured.Unstructured]) {}, informer.HandlerOptions{})
		if err != nil {
			b.Fatal(err)
		}
		synced = r.Synced()
	} else {
		r, err := informer.ForObject(factory, like).AddHandler(func(kube.Event[kube.Object]) {}, informer.HandlerOptions{})
		if err != nil {
			b.Fatal(err)
		}
		synced = r.Synced()
	}
	return synced, func(ctx context.Context) {
		if err := factory.Run(ctx); err != nil {
			b.Error(err)
		}
	}
}

// clientGoOf returns a dynamic informer, or one as generated clients have it.
func clientGoOf(b testing.TB, w *wire, cfg *rest.Config, types *k8sruntime.Scheme, like cluster.Object, f managed) (<-chan struct{}, func(context.Context)) {
	var objects cache.SharedIndexInformer
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	if _, ok := like.(*unstructured.Unstructured); ok {
		client, err := dynamic.NewForConfig(cfg)
		if err != nil {
			b.Fatal(err)
		}
		objects = dynamicinformer.NewFilteredDynamicInformer(client, w.kind.GroupVersion().WithResource(w.plural), metav1.NamespaceAll, 0, indexers, nil).Informer()
	} else {
		version := w.kind.GroupVersion()
		cfg.APIPath, cfg.GroupVersion, cfg.NegotiatedSerializer = "/apis", &version, serializer.NewCodecFactory(types).WithoutConversion()
		client, err := rest.RESTClientFor(cfg)
		if err != nil {
			b.Fatal(err)
		}
		lw := cache.ToListWatcherWithWatchListSemantics(cache.NewListWatchFromClient(client, w.plural, metav1.NamespaceAll, fields.Everything()), client)
		objects = cache.NewSharedIndexInformer(lw, reflect.New(reflect.TypeOf(like).Elem()).Interface().(k8sruntime.Object), 0, indexers)
	}
	if transform := f.transform(); transform != nil {
		if err := objects.SetTransform(transform); err != nil {
			b.Fatal(err)
		}
	}
	r, err := objects.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
	if err != nil {
		b.Fatal(err)
	}
	return r.HasSyncedChecker().Done(), objects.RunWithContext
}
