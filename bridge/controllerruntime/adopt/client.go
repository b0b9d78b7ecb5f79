// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
	"github.com/flyball-dev/flyball/manager"
)

// Client is controller-runtime's client of a manager's informers, and the indexer of fields for its lists. Make it with
// NewClient.
type Client struct {
	client.Client
	client.FieldIndexer
}

// NewClient returns a client of mgr. Get and List read mgr's informers and return copies, with each write that is complete. As in
// controller-runtime, a read of a kind that has no informer starts one, waits for it, and is logged once; unstructured reads go to the
// server. Writes pass the gate of mgr's leader election. Before mgr runs, cached reads are a *cache.ErrCacheNotStarted. Call it
// once per manager, before Run or during it. It asks the server for nothing, and returns an error if the configuration makes no client.
func NewClient(mgr *manager.Manager) (*Client, error) {
	view, err := bridge.CacheOf(mgr.Informers())(mgr.Config(), cache.Options{Scheme: mgr.Scheme(), Mapper: mgr.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client of the manager: %w", err)
	}
	c, err := client.New(mgr.Config(), client.Options{ // whose writes the informers observe
		Scheme: mgr.Scheme(), Mapper: mgr.RESTMapper(), Cache: &client.CacheOptions{Reader: view},
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of the manager: %w", err)
	}
	if err := mgr.AddTo(manager.StageInformers, reads{view}); err != nil {
		return nil, fmt.Errorf("make a client of the manager: %w", err)
	}
	return &Client{c, view}, nil
}

// reads is a view of the informers as a Runnable.
type reads struct{ cache.Cache }

var (
	_ manager.Runnable = reads{}
	_ manager.Named    = reads{}
	_ manager.Started  = reads{}
)

// Run implements manager.Runnable.
func (r reads) Run(ctx context.Context) error { return r.Start(ctx) }

// Name implements manager.Named.
func (reads) Name() string { return "reads of controller-runtime's client" }

// Started implements manager.Started: controllers must not read before.
func (r reads) Started() <-chan struct{} { return r.Cache.(manager.Started).Started() }
