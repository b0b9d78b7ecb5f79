// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flyball-dev/flyball/informer"
)

// CacheOf returns a NewCache whose caches are views of informers, such as those of flyball's manager, so that two managers in one
// process share each watch:
//
//	old, err := ctrl.NewManager(mgr.Config(), bridge.Options(ctrl.Options{NewCache: bridge.CacheOf(mgr.Informers())}))
//	err = mgr.Add(manager.RunnableFunc(old.Start))
//
// Who owns the informers runs them: a cache only waits for their syncs. Each kind is watched once if both sides ask for the same
// namespaces and selectors. The objects are as that side keeps them: without managed fields, unless informer.Options.KeepManagedFields is set. Their
// types must be in the scheme of the informers. Transforms and DefaultWatchErrorHandler belong to that side too; NewCache
// returns an error if its options have some, or NewInformer. Nil informers are an error as well.
func CacheOf(informers *informer.SharedInformerFactory) cache.NewCacheFunc {
	return func(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
		if err := shareable(informers, opts); err != nil {
			return nil, err
		}
		_, completed, err := complete(cfg, opts)
		if err != nil {
			return nil, err
		}
		c := newKinds(completed)
		c.factory, c.shared, c.stripped = informers, true, true
		return c, nil
	}
}

// shareable returns why a cache with opts cannot be a view of informers.
func shareable(informers *informer.SharedInformerFactory, opts cache.Options) error {
	transforms := opts.DefaultTransform != nil
	for _, c := range opts.DefaultNamespaces {
		transforms = transforms || c.Transform != nil
	}
	for _, by := range opts.ByObject {
		transforms = transforms || by.Transform != nil
		for _, c := range by.Namespaces {
			transforms = transforms || c.Transform != nil
		}
	}
	switch {
	case informers == nil:
		return errors.New("make a cache of shared informers: there are none; give those of a manager, mgr.Informers()")
	case opts.NewInformer != nil:
		return errors.New("make a cache of shared informers: NewInformer is set; remove it, or use NewCache")
	case transforms:
		return errors.New("make a cache of shared informers: a transform is set; set it by SetTransform of the informer of the kind")
	case opts.DefaultWatchErrorHandler != nil:
		return errors.New("make a cache of shared informers: DefaultWatchErrorHandler is set; set it by SetErrorHandler of the informer of the kind")
	}
	return nil
}
