// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/compact"
)

// Options returns opts with flyball's cache and client, for ctrl.NewManager. A NewCache or NewClient of opts stays.
func Options(opts ctrl.Options) ctrl.Options {
	if opts.NewCache == nil {
		opts.NewCache = NewCache
	}
	if opts.NewClient == nil {
		opts.NewClient = NewClient
	}
	return opts
}

// CacheOptions are what a cache can do beside cache.Options. NewCache has the zero value; others
// are set with
//
//	bridge.Options(ctrl.Options{NewCache: bridge.CacheOptions{MemoryLimit: 256 << 20}.NewCache})
type CacheOptions struct {
	// DropManagedFields drops metadata.managedFields before they are decoded, as the transform
	// cache.TransformStripManagedFields does if all namespaces of a kind have it. An update without
	// them leaves those on the server as they are. Programs that read them need them, such as those
	// that use Cluster API's libraries or Extract of apply configurations.
	DropManagedFields bool
	// MemoryLimit is how many bytes the cached objects may take. Above it they are packed, kind by
	// kind, first what takes most memory per read: a read of a packed object that was not read
	// recently decodes it. A kind that does not fit packed either is not cached until there is
	// room; its state and the log say so. 0: 80 % of GOMEMLIMIT if it is set, else half of the
	// memory limit of the process's cgroup, if there is one. Negative: no limit.
	MemoryLimit int64
	// ReadLimit bounds, in bytes, the objects of an informer that a cached read alone starts: one
	// of a kind that is not watched, has no index, and was not asked for with GetInformer. Before
	// such a read starts the informer, a list of one object asks how many there are, and the size
	// of their JSON is estimated by that one. Above the limit the read returns a *ReadLimitError,
	// which is also logged once for each kind, and starts nothing; after a minute the next read
	// counts again. What a selector of cache.Options selects is not counted, as the server does
	// not say. 0: no limit.
	ReadLimit int64
}

// NewCache is cache.New with flyball's informers and o. With opts.NewInformer it is cache.New,
// which is logged.
func (o CacheOptions) NewCache(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
	if opts.NewInformer != nil {
		log.Log.WithName("cache").Info("Uses controller-runtime's informers, because cache.Options.NewInformer is set; remove it to use flyball's")
		return cache.New(cfg, opts)
	}
	cfg, completed, err := complete(cfg, opts)
	if err != nil {
		return nil, err
	}
	c := newKinds(completed)
	c.stripped, c.limit.bytes, c.limit.server = o.DropManagedFields, o.ReadLimit, cfg
	c.factory, err = informer.NewSharedInformerFactory(cfg, c.Scheme, informer.Options{
		Logger: c.log, MemoryBudget: o.MemoryLimit, Compact: compact.New(compact.Options{WhenFull: true}),
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}
