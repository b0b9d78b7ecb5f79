// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/internal/effects"
)

// NewClient is client.New, but the cache shows what the client writes before the call returns, without making any read
// wait. With a cache that is not of NewCache, it is client.New. ClientOptions.NewClient is the same with further options.
func NewClient(cfg *rest.Config, opts client.Options) (client.Client, error) {
	return ClientOptions{}.NewClient(cfg, opts)
}

// ClientOptions are what a client can do beside client.Options. NewClient has the zero value;
// others are set with
//
//	bridge.Options(ctrl.Options{NewClient: bridge.ClientOptions{OmitNoOps: true}.NewClient})
type ClientOptions struct {
	// OmitNoOps does not send an Update, Patch or Apply, of an object or of its status, that would
	// change nothing according to the cache: it returns nil, with the cached object in obj.
	// Whatever is not known is sent:
	//
	//   - a write of an object that no informer of the same Go type holds, of one with an own
	//     write whose outcome is unknown, or while the watch of the kind is not live;
	//   - one that names another resourceVersion or UID, an update without a resourceVersion, a
	//     dry run, one with raw options or with a body for the subresource;
	//   - an update or a patch of a kind with a transform, in a cache of CacheOf, or of an object
	//     that is being deleted;
	//   - a patch with nulls or zeros that the Go type may only seem to hold, or that contains
	//     managedFields, and a JSON patch with operations;
	//   - an apply, unless this client's last one of the object, for the same field owner, was the
	//     same, and the cache has the object as it was answered then, except for the part that the
	//     apply does not change.
	//
	// The cache lags behind the server: watch the objects, so that what others change leads to
	// the next write. An omitted write asks no admission webhook, needs no right, and does not
	// rewrite the stored object, so do not set OmitNoOps in a program that migrates stored
	// versions. Fields that the Go type does not know are not compared. The metric
	// flyball_client_omitted_writes_total counts what was omitted. It has no effect with a cache
	// that is not of NewCache or CacheOf, or with client.Options.DryRun.
	OmitNoOps bool
}

// NewClient is the function NewClient with o.
func (o ClientOptions) NewClient(cfg *rest.Config, opts client.Options) (client.Client, error) {
	if opts.Cache == nil {
		return client.New(cfg, opts)
	}
	c, ok := opts.Cache.Reader.(*kinds)
	if !ok {
		return client.New(cfg, opts)
	}
	watched, err := effects.NewObserver(cfg, c.Scheme, c.factory, c.factory)
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
	observed.Transport = attributing{watched.Wrap(watched.Recording(c.factory).Wrap(observed.Transport))}
	reads := *opts.Cache
	neverWait(&reads)
	opts.HTTPClient, opts.Cache = &observed, &reads
	made, err := client.New(cfg, opts)
	if err != nil || !o.OmitNoOps || ptr.Deref(opts.DryRun, false) {
		return made, err
	}
	return omitting(made, c, opts), nil
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
