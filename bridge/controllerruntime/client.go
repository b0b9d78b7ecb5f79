// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/internal/observer"
)

// NewClient is client.New, but the cache shows what the client writes before the call returns, without making any read
// wait. With a cache that is not of NewCache, it is client.New.
func NewClient(cfg *rest.Config, opts client.Options) (client.Client, error) {
	if opts.Cache == nil {
		return client.New(cfg, opts)
	}
	c, ok := opts.Cache.Reader.(*kinds)
	if !ok {
		return client.New(cfg, opts)
	}
	watched, err := observer.New(cfg, c.Scheme, c.factory, c.factory)
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	if opts.HTTPClient == nil {
		if opts.HTTPClient, err = rest.HTTPClientFor(cfg); err != nil {
			return nil, fmt.Errorf("make the client: %w", err)
		}
	}
	observed := *opts.HTTPClient
	observed.Transport = cmp.Or(observed.Transport, http.DefaultTransport)
	observed.Transport = watched.Wrap(observed.Transport)
	reads := *opts.Cache
	neverWait(&reads)
	opts.HTTPClient, opts.Cache = &observed, &reads
	return client.New(cfg, opts)
}

// neverWait removes what makes reads wait for own writes: the cache has them without waiting.
func neverWait(reads *client.CacheOptions) {
	(&waiting{CacheOptions: reads}).EnableReadYourWritesConsistency = nil
}

// waiting has the field that controller-runtime has since 0.25. Before, it is that of fallback, which is embedded one level
// deeper, and has no effect.
type (
	waiting struct {
		*client.CacheOptions
		deeper
	}
	deeper   struct{ fallback }
	fallback struct{ EnableReadYourWritesConsistency *bool }
)
