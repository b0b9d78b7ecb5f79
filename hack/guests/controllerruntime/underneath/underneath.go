// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package underneath creates controller-runtime's cache over flyball's informers, for the
// overlays with which the tests build other projects' suites: calls of controller-runtime's
// constructors become calls of these.
package underneath

import (
	"cmp"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/clientgo"
)

// New is cache.New with flyball's informers, unless opts has others.
func New(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	if opts.NewInformer == nil {
		opts.NewInformer = over(cmp.Or(opts.Scheme, clientscheme.Scheme))
	}
	return cache.New(config, opts)
}

// NewManager is manager.New with flyball's informers.
func NewManager(config *rest.Config, opts manager.Options) (manager.Manager, error) {
	opts.NewCache = New
	return manager.New(config, opts)
}

// over returns a constructor of informers that list and watch as the cache configures them.
func over(scheme *runtime.Scheme) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		kind, _ := apiutil.GVKForObject(obj, scheme) // the cache has checked this before
		like, _ := obj.(informer.Object)             // Run reports a type that is none
		i := clientgo.NewSharedIndexInformer(
			informer.NewForObject(clientgo.NewListerWatcher[informer.Object](lw), like, kind, informer.Options{Resync: resync}), clientgo.Options{})
		indexers = maps.Clone(indexers)
		delete(indexers, toolscache.NamespaceIndex) // always present
		if err := i.AddIndexers(indexers); err != nil {
			panic(err) // a test: the suite must fail
		}
		return i
	}
}
