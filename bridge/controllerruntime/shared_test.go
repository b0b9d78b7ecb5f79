// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// Two managers in one process, each with a controller of the same kinds: one watch per kind, and each reads the other's writes.
func TestCacheOf_TwoManagersShareOneWatchPerKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		simulated := simtest.New(t, nil, configMap("default", "a", nil))
		mgr, err := manager.New(manager.Options{
			Config: simulated.Config, Logger: logr.Discard(), MetricsAddress: "0", HealthAddress: "0",
			LeaderElection: &manager.LeaderElection{ID: "both", Namespace: "default"},
		})
		if err != nil {
			t.Fatal(err)
		}
		old, err := ctrl.NewManager(mgr.Config(), Options(ctrl.Options{
			NewCache: CacheOf(mgr.Informers()), Metrics: server.Options{BindAddress: "0"},
			Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		}))
		if err != nil {
			t.Fatal(err)
		}
		// theirs creates a Secret for each ConfigMap, ours marks the Secret.
		theirs := ctrlreconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			err := old.GetClient().Get(ctx, req.NamespacedName, &corev1.Secret{})
			if client.IgnoreNotFound(err) != nil || err == nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, old.GetClient().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}})
		})
		if err := ctrl.NewControllerManagedBy(old).Named("theirs").For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(theirs); err != nil {
			t.Fatal(err)
		}
		secrets := informer.For[*corev1.Secret](mgr.Informers())
		informer.For[*corev1.ConfigMap](mgr.Informers())
		ours := reconcile.For(secrets, func(ctx context.Context, s *corev1.Secret) (reconcile.Result, error) {
			marked := kube.Copy(s)
			metav1.SetMetaDataLabel(&marked.ObjectMeta, "marked", "yes")
			_, err := mgr.Client().PatchChanges(ctx, s, marked)
			return reconcile.Result{}, err
		}, reconcile.Options{})
		for _, r := range []manager.Runnable{ours, manager.RunnableFunc(old.Start)} {
			if err := mgr.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Run(ctx) }()
		time.Sleep(time.Minute)
		key := client.ObjectKey{Namespace: "default", Name: "a"}
		secret := &corev1.Secret{}
		if err := old.GetClient().Get(t.Context(), key, secret); err != nil || secret.Labels["marked"] != "yes" {
			t.Errorf("the Secret is %v with %v, want that both controllers worked on it", secret.ObjectMeta, err)
		}
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := old.GetClient().Get(t.Context(), key, metadata); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // a watch that begins to feed another form is opened anew
		for _, resource := range []string{"configmaps", "secrets"} {
			if n := simulated.Watches(schema.GroupResource{Resource: resource}); n != 1 {
				t.Errorf("%d watches of %s, want one for both managers", n, resource)
			}
		}
		simulated.LagKindTo(configMaps, simulated.Revision())
		written := configMap("default", "b", nil)
		if err := old.GetClient().Create(t.Context(), written); err != nil {
			t.Fatal(err)
		}
		maps := informer.For[*corev1.ConfigMap](mgr.Informers())
		if _, err := maps.Lister().Get(kube.Key{Namespace: "default", Name: "b"}); err != nil {
			t.Errorf("our Lister reads a write of their client: %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
}

func TestCacheOf_WhatBelongsToTheInformersIsAnError(t *testing.T) {
	simulated := simtest.New(t, nil)
	informers, err := informer.NewSharedInformerFactory(simulated.Config, clientscheme.Scheme, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mark := func(in any) (any, error) { return in, nil }
	for name, opts := range map[string]cache.Options{
		"SetTransform": {DefaultTransform: mark},
		"a transform":  {ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Namespaces: map[string]cache.Config{"one": {Transform: mark}}}}},
		"NewInformer": {NewInformer: func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
			return nil
		}},
		"SetErrorHandler": {DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) {}},
	} {
		if _, err := CacheOf(informers)(simulated.Config, opts); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
	}
	if _, err := CacheOf(nil)(simulated.Config, cache.Options{}); err == nil {
		t.Error("no informers are no error")
	}
	if _, err := CacheOf(informers)(simulated.Config, cache.Options{}); err != nil {
		t.Error(err)
	}
}
